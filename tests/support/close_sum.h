// Comparison of sums of products that were computed in f32 and rounded to a tensor's type.
#pragma once

#include <cmath>
#include <vector>

#include "tests/support/close.h"
#include "tests/support/float_types.h"

namespace lockstep::testing {

// A sequential sum may lose half an ulp of its magnitude at each term; the terms are of order one.
inline ::testing::AssertionResult close_sum(const Tensor& got,
                                            const std::vector<double>& want,
                                            int64_t terms) {
  Tolerance tolerance = f32_sum(terms);
  tolerance.abs += 0x1p-24 * static_cast<double>(terms);
  if (got.dtype() != Dtype::kF32) {
    const reference::FloatFormat format = format_of(got.dtype());
    tolerance.rel += std::ldexp(1, -format.mantissa_bits - 1);
    tolerance.abs += std::ldexp(1, format.min_exponent() - format.mantissa_bits - 1);
  }
  return close(floats_of(got), want, tolerance);
}

}  // namespace lockstep::testing
