// Specification of kernels/elementwise/scale.h in double.
#pragma once

#include <vector>

namespace lockstep::reference {

inline std::vector<double> scale(double factor, std::vector<double> values) {
  for (double& value : values) value *= factor;
  return values;
}

}  // namespace lockstep::reference
