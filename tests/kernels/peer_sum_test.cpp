#include "kernels/reduce/peer_sum.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/peer_sum.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tree_sums.h"

namespace lockstep::kernels::peer_sum_test {
namespace {

using testing::format_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

// Each in memory of its own.
std::vector<Tensor> random_leaves(int64_t count, int64_t n, Dtype dtype) {
  std::vector<Tensor> leaves;
  for (int64_t w = 0; w < count; ++w) {
    leaves.push_back(rounded_to(dtype, random_tensor({n}, 20 + static_cast<uint64_t>(w))));
  }
  return leaves;
}

Tensor reference_sum(const std::vector<Tensor>& leaves) {
  const Tensor& first = leaves.front();
  std::vector<std::vector<double>> rows;
  rows.reserve(leaves.size());
  for (const Tensor& leaf : leaves) rows.push_back(values_of(leaf));
  return tensor_of(
      reference::peer_sum(rows, format_of(first.dtype())), first.shape(), first.dtype());
}

// Sum of single elements.
double sum_of(const std::vector<double>& values, Dtype dtype) {
  Stream stream;
  std::vector<Tensor> leaves;
  for (const double value : values) leaves.push_back(tensor_of({&value, 1}, {1}, dtype));
  std::vector<Tensor> sums = {poisoned_tensor({1}, dtype)};
  peer_sum(stream, leaves, sums);
  return testing::get(sums[0], 0);
}

class PeerSumRanks : public ::testing::TestWithParam<int64_t> {};

TEST_P(PeerSumRanks, InPlaceEveryLeafBecomesTheTreesSum) {
  for (const Dtype dtype : kFloatTypes) {
    for (const int64_t n : {0, 1, 15, 16, 37, 300, 17000}) {
      const Tensor want = reference_sum(random_leaves(GetParam(), n, dtype));
      for (const int threads : {1, 3}) {
        Stream stream(Device::kCpu, threads);
        std::vector<Tensor> leaves = random_leaves(GetParam(), n, dtype);
        peer_sum(stream, leaves, leaves);
        for (const Tensor& sum : leaves) {
          ASSERT_TRUE(same_bits(sum, want)) << name_of(dtype) << ", " << n << " elements";
        }
      }
    }
  }
}

TEST_P(PeerSumRanks, EveryLevelGivesTheSameBits) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const std::vector<Tensor> leaves = random_leaves(GetParam(), 77, dtype);
    const Tensor want = reference_sum(leaves);
    for (PeerSum* body : LS_ISA_BODIES(peer_sum)) {
      std::vector<Tensor> sums = {poisoned_tensor({77}, dtype)};
      body(stream, leaves, sums);
      EXPECT_TRUE(same_bits(sums[0], want)) << name_of(dtype);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks,
                         PeerSumRanks,
                         ::testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 50));

TEST(PeerSum, WritesItsSumsAndNothingElse) {
  Stream stream;
  std::vector<Tensor> leaves = random_leaves(3, 100, Dtype::kF32);
  const std::vector<Tensor> before = random_leaves(3, 100, Dtype::kF32);
  const Tensor want = reference_sum(before);
  std::vector<Tensor> sums = {poisoned_tensor({100}, Dtype::kF32), leaves[2]};
  peer_sum(stream, leaves, sums);
  EXPECT_TRUE(same_bits(sums[0], want));
  EXPECT_TRUE(same_bits(leaves[2], want));
  EXPECT_TRUE(same_bits(leaves[0], before[0]));
  EXPECT_TRUE(same_bits(leaves[1], before[1]));
  peer_sum(stream, leaves, {});
  EXPECT_TRUE(same_bits(leaves[0], before[0]));
}

TEST(PeerSum, SlicesThatStartAnywhere) {
  Stream stream;
  std::vector<Tensor> whole = random_leaves(2, 103, Dtype::kF16);
  const std::vector<Tensor> before = random_leaves(2, 103, Dtype::kF16);
  std::vector<Tensor> leaves = {whole[0].slice(5, 57), whole[1].slice(5, 57)};
  peer_sum(stream, leaves, leaves);
  const Tensor want = reference_sum(before);
  for (const Tensor& tensor : whole) {
    EXPECT_TRUE(same_bits(tensor.slice(5, 57), want.slice(5, 57)));
  }
  EXPECT_TRUE(same_bits(whole[1].slice(0, 5), before[1].slice(0, 5)));
  EXPECT_TRUE(same_bits(whole[1].slice(62, 41), before[1].slice(62, 41)));
}

TEST(PeerSum, CancelingValuesInAllPlacements) {
  testing::check_canceling_leaves(sum_of);
}
TEST(PeerSum, NodesOverflowAsTheirTypeDoes) {
  testing::check_overflowing_nodes(sum_of);
}

// 19 elements: a vector and the scalar end.
TEST(PeerSum, SpecialValuesInVectorsAndAtTheEnd) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    for (const auto& [a, b] : std::vector<std::pair<double, double>>{{kInf, 1},
                                                                     {kInf, -kInf},
                                                                     {NAN, 1},
                                                                     {1, NAN},
                                                                     {-0.0, -0.0},
                                                                     {65504, 65504},
                                                                     {0x1p-24, 0x1p-24},
                                                                     {0x1p-14, -0x1p-24}}) {
      std::vector<Tensor> leaves = {Tensor::empty({19}, dtype), Tensor::empty({19}, dtype)};
      for (int64_t i = 0; i < 19; ++i) {
        testing::set(leaves[0], i, a);
        testing::set(leaves[1], i, b);
      }
      const double want = reference::tree_sum(std::vector<double>{a, b}, format_of(dtype));
      peer_sum(stream, leaves, leaves);
      for (int64_t i = 0; i < 19; ++i) {
        EXPECT_TRUE(testing::same_value(testing::get(leaves[1], i), want)) << a << " + " << b;
      }
    }
  }
}

TEST(PeerSum, RejectsWrongArguments) {
  Stream stream;
  std::vector<Tensor> leaves = {Tensor::zeros({3}, Dtype::kF32), Tensor::zeros({3}, Dtype::kF32)};
  std::vector<Tensor> short_sums = {Tensor::zeros({2}, Dtype::kF32)};
  std::vector<Tensor> narrow = {leaves[0], Tensor::zeros({3}, Dtype::kF16)};
  std::vector<Tensor> integers = {Tensor::zeros({3}, Dtype::kI32)};
  std::vector<Tensor> matrices = {Tensor::zeros({3, 1}, Dtype::kF32)};
  EXPECT_THROW(peer_sum(stream, {}, leaves), ShapeError);
  EXPECT_THROW(peer_sum(stream, narrow, leaves), DtypeError);
  EXPECT_THROW(peer_sum(stream, leaves, narrow), DtypeError);
  EXPECT_THROW(peer_sum(stream, integers, integers), DtypeError);
  EXPECT_THROW(peer_sum(stream, matrices, matrices), ShapeError);
  try {
    peer_sum(stream, leaves, short_sums);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[peer_sum] sum: shape (2), expected (3)");
  }
}

TEST(PeerSum, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  std::vector<Tensor> leaves(4, Tensor::empty({10}, Dtype::kF16, Device::kDry));
  peer_sum(stream, leaves, leaves);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].flops, 30);
  EXPECT_EQ(stream.ledger()[0].bytes, 160);
}

}  // namespace
}  // namespace lockstep::kernels::peer_sum_test
