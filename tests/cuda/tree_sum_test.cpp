#include "kernels/reduce/tree_sum.h"

#include <limits>
#include <utility>

#include "tests/reference/tree_sum.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tree_sums.h"

namespace lockstep::kernels::tree_sum_test {
namespace {

using testing::get;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_value;
using testing::tensor_of;

Tensor sum_on_cpu(const Tensor& leaves, Dtype dtype) {
  Stream stream;
  Tensor out = poisoned_tensor({leaves.shape()[1]}, dtype);
  tree_sum(stream, leaves, out);
  return out;
}

class CudaTreeSum : public testing::CudaTest {
 protected:
  // Sums of columns, each a list of leaves.
  Tensor sums_of(const std::vector<std::vector<double>>& columns, Dtype leaf_dtype, Dtype dtype) {
    const auto rows = static_cast<int64_t>(columns.front().size());
    const auto n = static_cast<int64_t>(columns.size());
    Tensor leaves = Tensor::empty({rows, n}, leaf_dtype);
    for (int64_t k = 0; k < rows; ++k) {
      for (int64_t i = 0; i < n; ++i) {
        testing::set(leaves, k * n + i, columns[static_cast<size_t>(i)][static_cast<size_t>(k)]);
      }
    }
    Tensor out = poisoned({n}, dtype);
    tree_sum(stream_, upload(leaves), out);
    return download(out);
  }
};

class CudaTreeSumRows : public CudaTreeSum, public ::testing::WithParamInterface<int64_t> {};

TEST_P(CudaTreeSumRows, HasTheBitsOfTheCpu) {
  for (const Dtype leaf_dtype : kFloatTypes) {
    for (const int64_t n : {0, 1, 7, 8, 12, 24, 77, 296}) {
      const Tensor leaves = rounded_to(leaf_dtype, random_tensor({GetParam(), n}, 3, -9, 9));
      for (const Dtype dtype : kFloatTypes) {
        const Tensor want = sum_on_cpu(leaves, dtype);
        for (const bool aligned : {true, false}) {
          Tensor out = poisoned({n}, dtype);
          tree_sum(stream_, aligned ? upload(leaves) : upload_misaligned(leaves), out);
          EXPECT_TRUE(same_bits(download(out), want))
              << n << " columns, " << name_of(leaf_dtype) << " to " << name_of(dtype);
        }
      }
    }
  }
}

TEST_P(CudaTreeSumRows, MayOverwriteItsFirstRow) {
  for (const Dtype dtype : kFloatTypes) {
    const Tensor leaves = rounded_to(dtype, random_tensor({GetParam(), 40}, 4));
    Tensor on_device = upload(leaves);
    Tensor first = on_device.slice(0, 1).view({40});
    tree_sum(stream_, on_device, first);
    EXPECT_TRUE(same_bits(download(first), sum_on_cpu(leaves, dtype)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    CudaTreeSumRows,
    ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33, 97));

TEST_F(CudaTreeSum, WritesItsColumnsAndNothingElse) {
  const Tensor leaves = random_tensor({3, 13}, 5);
  Tensor room = poisoned({15}, Dtype::kF32);
  Tensor out = room.slice(1, 13);
  tree_sum(stream_, upload(leaves), out);
  const Tensor got = download(room);
  EXPECT_TRUE(same_bits(got.slice(1, 13), sum_on_cpu(leaves, Dtype::kF32)));
  const Tensor untouched = poisoned_tensor({1}, Dtype::kF32);
  EXPECT_TRUE(same_bits(got.slice(0, 1), untouched));
  EXPECT_TRUE(same_bits(got.slice(14, 1), untouched));
}

// 1e8 + 1 = 1e8: the order decides what is left.
TEST_F(CudaTreeSum, CancelingValuesInAllPlacements) {
  for (const Dtype dtype : kFloatTypes) {
    const double large = dtype == Dtype::kF32 ? 1e8 : 4096;
    for (const size_t count : {4U, 5U, 6U, 7U, 8U, 9U}) {
      std::vector<double> leaves(count, 0.0);
      std::ranges::copy(std::vector<double>{large, 1, -large, 1}, leaves.begin());
      std::ranges::sort(leaves);
      std::vector<std::vector<double>> placements;
      do {
        placements.push_back(leaves);
      } while (std::ranges::next_permutation(leaves).found);
      const Tensor got = sums_of(placements, Dtype::kF32, dtype);
      bool differs_from_fold = false;
      for (size_t i = 0; i < placements.size(); ++i) {
        const double sum = get(got, static_cast<int64_t>(i));
        EXPECT_EQ(sum, reference::tree_sum(placements[i], testing::format_of(dtype)));
        differs_from_fold |= sum != testing::left_fold(placements[i], dtype);
      }
      EXPECT_TRUE(differs_from_fold) << count << " leaves of " << name_of(dtype);
    }
  }
}

TEST_F(CudaTreeSum, NodesOverflowAsTheirTypeDoes) {
  testing::check_overflowing_nodes([&](const std::vector<double>& leaves, Dtype dtype) {
    return get(sums_of({leaves}, Dtype::kF32, dtype), 0);
  });
}

TEST_F(CudaTreeSum, NanInfinityAndRoundingOfLeaves) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::vector<double>, double>> cases = {
      {{kInf, 1, -kInf}, kNan},
      {{1, kInf, 3}, kInf},
      {{1, 2, kNan}, kNan},
      {{-0.0, -0.0, -0.0}, -0.0},
      {{-0.0, 0.0, -0.0}, 0.0},
      {{0x1p-24, 0x1p-24, 0}, 0x1p-23},  // denormal in f16
      {{2048, 0, 1, 1}, 2050},           // the ones meet first
      {{1, 2048, 1}, 2048}};             // f16: each one is a tie, to even
  for (const auto& [leaves, want] : cases) {
    EXPECT_TRUE(same_value(get(sums_of({leaves}, Dtype::kF32, Dtype::kF16), 0), want));
    EXPECT_TRUE(same_value(get(sums_of({leaves}, Dtype::kF16, Dtype::kF16), 0), want));
  }
  EXPECT_EQ(get(sums_of({{70000}}, Dtype::kF32, Dtype::kF16), 0), kInf);
  EXPECT_EQ(get(sums_of({{1 + 0x1p-11, 1 + 0x1p-11}}, Dtype::kF32, Dtype::kF16), 0), 2);
}

TEST_F(CudaTreeSum, AsManyLeavesAsTheContractSays) {
  Tensor out = poisoned({5}, Dtype::kF32);
  const Tensor most = random_tensor({508 + 3, 5}, 6);
  tree_sum(stream_, upload(most.slice(0, 508)), out);
  EXPECT_TRUE(same_bits(download(out), sum_on_cpu(most.slice(0, 508), Dtype::kF32)));
  try {
    tree_sum(stream_, upload(most.slice(0, 509)), out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[tree_sum] leaves: got 509, expected 508 at most");
  }
}

}  // namespace
}  // namespace lockstep::kernels::tree_sum_test
