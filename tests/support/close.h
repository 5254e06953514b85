// Comparison of float arrays, in which a NaN never passes for a number.
#pragma once

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor.h"

namespace lockstep::testing {

// An element is close when |got - want| <= abs + rel * |want|. A NaN is close only to a NaN, an
// infinity only to the same infinity. A failure names the worst element, both values and the number
// of elements that differ.
struct Tolerance {
  double rel = 0;
  double abs = 0;
};

// The tolerance for f32 sums of `terms` products of order one, compared with a reference in double.
Tolerance f32_sum(int64_t terms);

::testing::AssertionResult close(std::span<const float> got,
                                 std::span<const float> want,
                                 Tolerance tolerance);
::testing::AssertionResult close(std::span<const float> got,
                                 std::span<const double> want,
                                 Tolerance tolerance);
// Requires the same shape, dtype and bytes.
::testing::AssertionResult same_bits(const Tensor& got, const Tensor& want);
// Like same_bits, but all NaNs are equal, since their bits in arithmetic depend on the processor.
// Requires: f32, f16 or bf16.
::testing::AssertionResult same_bits_or_nan(const Tensor& got, const Tensor& want);

}  // namespace lockstep::testing
