// Specification of kernels/optim/weight_averages.h in double, one element at a time.
#pragma once

#include <algorithm>

namespace lockstep::reference {

inline double ema_update(double value, double ema, double decay, double step) {
  const double mu = std::min(decay, (1 + step) / (10 + step));
  return mu * ema + (1 - mu) * value;
}

}  // namespace lockstep::reference
