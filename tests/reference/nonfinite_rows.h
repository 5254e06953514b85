// Specification of kernels/reduce/nonfinite_rows.h in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep::reference {

inline std::vector<int32_t> nonfinite_rows(const std::vector<double>& in, size_t rows) {
  std::vector<int32_t> counts(rows, 0);
  const size_t length = rows == 0 ? 0 : in.size() / rows;
  for (size_t i = 0; i < rows * length; ++i) counts[i / length] += std::isfinite(in[i]) ? 0 : 1;
  return counts;
}

}  // namespace lockstep::reference
