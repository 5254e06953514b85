// Specification of kernels/elementwise/add.h in double.
#pragma once

#include <vector>

namespace lockstep::reference {

inline std::vector<double> add(const std::vector<double>& src, const std::vector<double>& dst) {
  std::vector<double> sum(dst.size());
  for (size_t i = 0; i < dst.size(); ++i) sum[i] = dst[i] + src[i];
  return sum;
}

}  // namespace lockstep::reference
