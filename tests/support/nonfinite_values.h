// Random values with infinities, NaNs and the largest finite numbers among them.
#pragma once

#include <limits>

#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing {

inline Tensor mostly_finite(const Shape& shape, Dtype dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double largest = dtype == Dtype::kF16 ? 65504 : 0x1.fep127;
  const double special[] = {kInf, largest, kNan, 0, -kInf, -largest, 0x1p-140};
  Tensor tensor = rounded_to(dtype, random_tensor(shape, 1));
  size_t next = 0;
  for (int64_t i = 0; i < tensor.numel(); i += 3) set(tensor, i, special[next++ % 7]);
  return tensor;
}

}  // namespace lockstep::testing
