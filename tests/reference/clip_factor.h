// Specification of kernels/optim/gradient_factors.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::reference {

inline double clip_factor(double scaled_norm, double max_norm, double scale) {
  const double norm = scaled_norm / scale;
  if (std::isnan(norm)) return norm;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace lockstep::reference
