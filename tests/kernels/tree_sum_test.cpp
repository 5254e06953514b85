#include "kernels/reduce/tree_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/tree.h"
#include "tests/reference/tree_sum.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tree_sums.h"

namespace lockstep::kernels::tree_sum_test {
namespace {

using testing::doubles;
using testing::format_of;
using testing::get;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::set;
using testing::tensor_of;

// Column by column.
Tensor reference_sums(const Tensor& leaves, Dtype dtype = Dtype::kF32) {
  const int64_t rows = leaves.shape()[0];
  const int64_t n = leaves.shape()[1];
  Tensor sums = Tensor::empty({n}, dtype);
  std::vector<double> column(static_cast<size_t>(rows));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < rows; ++k) column[static_cast<size_t>(k)] = get(leaves, k * n + i);
    set(sums, i, reference::tree_sum(column, format_of(dtype)));
  }
  return sums;
}

// Sum of one column.
double sum_of(const std::vector<double>& column,
              Dtype leaf_dtype = Dtype::kF32,
              Dtype out_dtype = Dtype::kF32) {
  Stream stream;
  const Tensor leaves = tensor_of(column, {static_cast<int64_t>(column.size()), 1}, leaf_dtype);
  Tensor out = poisoned_tensor({1}, out_dtype);
  tree_sum(stream, leaves, out);
  return get(out, 0);
}

// Rounded to the sum's type as they are read.
double sum_of_wide_leaves(const std::vector<double>& column, Dtype dtype) {
  return sum_of(column, Dtype::kF32, dtype);
}

int64_t count_of_other_values(const Tensor& got, const Tensor& want) {
  int64_t count = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    count += testing::same_value(get(got, i), get(want, i)) ? 0 : 1;
  }
  return count;
}

class TreeSumRows : public ::testing::TestWithParam<int64_t> {};

TEST_P(TreeSumRows, EqualsTheTreeBitForBit) {
  for (const int64_t n : {0, 1, 15, 16, 37, 300, 17000}) {
    const Tensor leaves = random_tensor({GetParam(), n}, 7);
    const Tensor want = reference_sums(leaves);
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      Tensor got = poisoned_tensor({n}, Dtype::kF32);
      tree_sum(stream, leaves, got);
      EXPECT_TRUE(same_bits(got, want)) << n << " columns, " << threads << " threads";
    }
  }
}

TEST_P(TreeSumRows, MayOverwriteItsFirstRow) {
  Stream stream;
  Tensor leaves = random_tensor({GetParam(), 301}, 8);
  const Tensor want = reference_sums(leaves);
  Tensor first = leaves.slice(0, 1).view({301});
  tree_sum(stream, leaves, first);
  EXPECT_TRUE(same_bits(first, want));
}

TEST_P(TreeSumRows, EveryLevelGivesTheSameBits) {
  Stream stream;
  const Tensor leaves = random_tensor({GetParam(), 77}, 9);
  const Tensor want = reference_sums(leaves);
  for (TreeSum* body : LS_ISA_BODIES(tree_sum)) {
    Tensor got = poisoned_tensor({77}, Dtype::kF32);
    body(stream, leaves, got);
    EXPECT_TRUE(same_bits(got, want));
  }
}
TEST_P(TreeSumRows, LeavesAndNodesAreRoundedToOutsType) {
  for (const Dtype leaf_dtype : kFloatTypes) {
    const Tensor leaves = rounded_to(leaf_dtype, random_tensor({GetParam(), 77}, 11, -9, 9));
    for (const Dtype dtype : kFloatTypes) {
      const Tensor want = reference_sums(leaves, dtype);
      Stream stream(Device::kCpu, 2);
      for (TreeSum* body : LS_ISA_BODIES(tree_sum)) {
        Tensor got = poisoned_tensor({77}, dtype);
        body(stream, leaves, got);
        EXPECT_TRUE(same_bits(got, want)) << name_of(leaf_dtype) << " to " << name_of(dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    TreeSumRows,
    ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 33, 97));

TEST(TreeSum, SixteenBitTreesCutOverThreads) {
  Stream stream(Device::kCpu, 3);
  for (const int64_t rows : {8, 40}) {
    const Tensor leaves = random_tensor({rows, 17003}, 12);
    Tensor got = poisoned_tensor({17003}, Dtype::kBF16);
    tree_sum(stream, leaves, got);
    EXPECT_TRUE(same_bits(got, reference_sums(leaves, Dtype::kBF16)));
  }
}

TEST(TreeSum, ReferenceIsTheTreeOfCore) {
  for (int64_t rows = 1; rows <= 40; ++rows) {
    const Tensor leaves = random_tensor({rows}, 10);
    std::vector<float> nodes(leaves.span<float>().begin(), leaves.span<float>().end());
    const double want = reference::tree_sum(doubles(leaves), reference::kF32Format);
    for_each_tree_merge(rows, [&](int64_t into, int64_t from) {
      nodes[static_cast<size_t>(into)] += nodes[static_cast<size_t>(from)];
    });
    EXPECT_EQ(nodes[0], want) << rows;
  }
}

TEST(TreeSum, CancelingValuesInAllPlacements) {
  testing::check_canceling_leaves(sum_of_wide_leaves);
}
TEST(TreeSum, NodesOverflowAsTheirTypeDoes) {
  testing::check_overflowing_nodes(sum_of_wide_leaves);
}

TEST(TreeSum, NanAndInfinityFollowIeee) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(sum_of({kInf, 1, -kInf})));
  EXPECT_TRUE(std::isnan(sum_of({1, 2, 3, NAN, 5})));
  EXPECT_EQ(sum_of({1, kInf, 3}), kInf);
  EXPECT_TRUE(std::signbit(sum_of({-0.0, -0.0})));
}

TEST(TreeSum, SixteenBitLeavesAndNodesRoundAsTheirTypeDoes) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr Dtype kF32 = Dtype::kF32;
  constexpr Dtype kF16 = Dtype::kF16;
  EXPECT_EQ(sum_of({70000}, kF32, kF16), kInf);  // a single leaf is rounded too
  // Each leaf rounds to 1; their exact sum would round to 2 + 2^-9.
  EXPECT_EQ(sum_of({1 + 0x1p-11, 1 + 0x1p-11}, kF32, kF16), 2);
  // 2048 + 1 is a tie in f16 and goes to even at each node; in f32 the ones survive.
  EXPECT_EQ(sum_of({2048, 1, 1, 0}, kF16, kF16), 2048);
  EXPECT_EQ(sum_of({2048, 1, 1, 0}, kF16, kF32), 2050);
  EXPECT_TRUE(std::isnan(sum_of({1, NAN, 3}, kF32, kF16)));
  EXPECT_TRUE(std::isnan(sum_of({1, NAN, 3}, kF32, Dtype::kBF16)));
}

// Leaves and sums go through vector conversions; core/dtype.h's are the definition.
TEST(TreeSum, ConvertsEveryPatternAndEveryTieAsDtypesDo) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    Tensor patterns = Tensor::empty({1, 65536}, dtype);
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      std::memcpy(patterns.bytes() + size_t{2} * bits, &bits, 2);
    }
    // Each value, halfway to the next one and the neighbors of that.
    Tensor wide = Tensor::empty({1, 4 * 65536}, Dtype::kF32);
    for (int64_t i = 0; i < 65536; ++i) {
      const auto value = static_cast<float>(get(patterns, i));
      const auto next = static_cast<float>(get(patterns, std::min<int64_t>(i + 1, 65535)));
      const float tie = value / 2 + next / 2;
      float* to = wide.data<float>() + 4 * i;
      std::ranges::copy(
          std::vector{value, tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 2 * tie)}, to);
    }
    const Tensor want_wide = rounded_to(Dtype::kF32, patterns.view({65536}));
    const Tensor want_narrow = rounded_to(dtype, wide.view({4 * 65536}));
    for (TreeSum* body : LS_ISA_BODIES(tree_sum)) {
      Tensor got_wide = poisoned_tensor({65536}, Dtype::kF32);
      Tensor got_narrow = poisoned_tensor({4 * 65536}, dtype);
      body(stream, patterns, got_wide);
      body(stream, wide, got_narrow);
      EXPECT_EQ(count_of_other_values(got_wide, want_wide), 0) << name_of(dtype);
      EXPECT_EQ(count_of_other_values(got_narrow, want_narrow), 0) << name_of(dtype);
    }
  }
}

TEST(TreeSum, NanOfAnyPayloadStaysNan) {
  Stream stream;
  Tensor leaves = Tensor::empty({1, 16}, Dtype::kF32);
  for (const uint32_t bits : {0x7f800001U, 0x7fbfffffU, 0x7fffffffU, 0xffffffffU}) {
    std::ranges::fill(leaves.span<float>(), std::bit_cast<float>(bits));
    for (const Dtype dtype : kFloatTypes) {
      for (TreeSum* body : LS_ISA_BODIES(tree_sum)) {
        Tensor out = Tensor::zeros({16}, dtype);
        body(stream, leaves, out);
        EXPECT_TRUE(std::isnan(get(out, 0))) << name_of(dtype);
      }
    }
  }
}

TEST(TreeSum, RejectsWrongArguments) {
  Stream stream;
  const Tensor leaves = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor out = Tensor::zeros({3}, Dtype::kF32);
  Tensor short_out = Tensor::zeros({2}, Dtype::kF32);
  EXPECT_THROW(tree_sum(stream, Tensor::zeros({0, 3}, Dtype::kF32), out), ShapeError);
  EXPECT_THROW(tree_sum(stream, Tensor::zeros({3}, Dtype::kF32), out), ShapeError);
  EXPECT_THROW(tree_sum(stream, Tensor::zeros({2, 3}, Dtype::kI32), out), DtypeError);
  Tensor integers = Tensor::zeros({3}, Dtype::kI32);
  EXPECT_THROW(tree_sum(stream, leaves, integers), DtypeError);
  try {
    tree_sum(stream, leaves, short_out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[tree_sum] out: shape (2), expected (3)");
  }
}

TEST(TreeSum, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor leaves = Tensor::empty({4, 10}, Dtype::kF32, Device::kDry);
  Tensor out = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  tree_sum(stream, leaves, out);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].flops, 30);
  EXPECT_EQ(stream.ledger()[0].bytes, 200);
}

}  // namespace
}  // namespace lockstep::kernels::tree_sum_test
