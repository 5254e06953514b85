// Comparison of float arrays that a NaN cannot pass.
#pragma once

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor.h"

namespace lockstep::testing {

// An element is close when |got - want| <= abs + rel * |want|. NaN is close to NaN only, infinity
// to the same infinity only. Failure names the worst element, both values and how many differ.
struct Tolerance {
  double rel = 0;
  double abs = 0;
};

// The tolerance of f32 sums of `terms` products of order one against a double reference.
Tolerance f32_sum(int64_t terms);

::testing::AssertionResult close(std::span<const float> got,
                                 std::span<const float> want,
                                 Tolerance tolerance);
::testing::AssertionResult close(std::span<const float> got,
                                 std::span<const double> want,
                                 Tolerance tolerance);
// Requires the same shape, dtype and bytes.
::testing::AssertionResult same_bits(const Tensor& got, const Tensor& want);
// Compares likewise, but takes any NaN for any other: arithmetic gives a processor's own. Requires:
// f32, f16 or bf16.
::testing::AssertionResult same_bits_or_nan(const Tensor& got, const Tensor& want);

}  // namespace lockstep::testing
