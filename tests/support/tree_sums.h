// Properties of every sum in tree order, independent of where its leaves are.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/tree_sum.h"
#include "tests/support/float_types.h"

namespace lockstep::testing {

// All NaNs are equal; zeros of different signs are not.
inline bool same_value(double a, double b) {
  return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
}

// Computes the sum of some leaves. Each leaf and each node is rounded to `dtype`.
using SumOfLeaves = std::function<double(const std::vector<double>& leaves, Dtype dtype)>;

// Adds leaves from the first to the last.
inline double left_fold(const std::vector<double>& leaves, Dtype dtype) {
  const reference::FloatFormat format = format_of(dtype);
  double sum = leaves[0];
  for (size_t k = 1; k < leaves.size(); ++k) {
    sum = reference::round_to(static_cast<float>(sum + leaves[k]), format);
  }
  return sum;
}

// large + 1 = large, so the result depends on the order.
inline void check_canceling_leaves(const SumOfLeaves& sum_of) {
  for (const Dtype dtype : kFloatTypes) {
    const double large = dtype == Dtype::kF32 ? 1e8 : 4096;
    for (const size_t count : {4U, 5U, 7U, 8U, 20U}) {
      std::vector<double> leaves(count, 0.0);
      std::ranges::copy(std::vector<double>{large, 1, -large, 1}, leaves.begin());
      std::ranges::sort(leaves);
      bool differs_from_fold = false;
      int placements = 0;
      do {
        const double got = sum_of(leaves, dtype);
        EXPECT_EQ(got, reference::tree_sum(leaves, format_of(dtype)));
        differs_from_fold = differs_from_fold || got != left_fold(leaves, dtype);
        ++placements;
      } while (std::ranges::next_permutation(leaves).found && placements < 2000);
      EXPECT_TRUE(differs_from_fold) << count << " leaves of " << name_of(dtype);
    }
    EXPECT_EQ(sum_of({large, 1, -large, 1}, dtype), 0);
    EXPECT_EQ(left_fold({large, 1, -large, 1}, dtype), 1);
    EXPECT_EQ(sum_of({large, -large, 1, 1}, dtype), 2);
  }
}

inline void check_overflowing_nodes(const SumOfLeaves& sum_of) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const double value : {40000.0, 60000.0}) {
    EXPECT_EQ(sum_of({value, value, -value, -value}, Dtype::kF32), 0);
    EXPECT_EQ(sum_of({value, value}, Dtype::kF16), kInf);
    EXPECT_TRUE(std::isnan(sum_of({value, value, -value, -value}, Dtype::kF16)));  // inf - inf
    EXPECT_EQ(sum_of({value, -value, value, -value}, Dtype::kF16), 0);
  }
  EXPECT_EQ(sum_of({3e38, 3e38}, Dtype::kBF16), kInf);
  EXPECT_EQ(sum_of({3e38, -3e38, 3e38, 3e38}, Dtype::kF32), kInf);
}

}  // namespace lockstep::testing
