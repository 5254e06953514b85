#include "kernels/reduce/peer_sum.h"

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/random_tensor.h"
#include "tests/support/tree_sums.h"

namespace lockstep::kernels::peer_sum_test {
namespace {

using testing::get;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;

// Each in memory of its own.
std::vector<Tensor> random_leaves(int64_t count, int64_t n, Dtype dtype) {
  std::vector<Tensor> leaves;
  for (int64_t w = 0; w < count; ++w) {
    leaves.push_back(rounded_to(dtype, random_tensor({n}, 20 + static_cast<uint64_t>(w))));
  }
  return leaves;
}

Tensor sum_on_cpu(const std::vector<Tensor>& leaves) {
  Stream stream;
  std::vector<Tensor> sums = {poisoned_tensor(leaves.front().shape(), leaves.front().dtype())};
  peer_sum(stream, leaves, sums);
  return sums[0];
}

class CudaPeerSum : public testing::CudaTest {
 protected:
  std::vector<Tensor> upload_all(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> uploaded;
    for (const Tensor& tensor : tensors) uploaded.push_back(upload(tensor));
    return uploaded;
  }
};

class CudaPeerSumRanks : public CudaPeerSum, public ::testing::WithParamInterface<int64_t> {};

TEST_P(CudaPeerSumRanks, InPlaceEveryLeafGetsTheBitsOfTheCpu) {
  for (const Dtype dtype : kFloatTypes) {
    for (const int64_t n : {0, 1, 7, 8, 37, 296}) {
      const std::vector<Tensor> leaves = random_leaves(GetParam(), n, dtype);
      const Tensor want = sum_on_cpu(leaves);
      std::vector<Tensor> on_device = upload_all(leaves);
      peer_sum(stream_, on_device, on_device);
      for (const Tensor& sum : on_device) {
        ASSERT_TRUE(same_bits(download(sum), want)) << n << " of " << name_of(dtype);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Ranks,
    CudaPeerSumRanks,
    ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33));

TEST_F(CudaPeerSum, OneMisalignedVectorIsEnoughToGoOneByOne) {
  for (const Dtype dtype : kFloatTypes) {
    const std::vector<Tensor> leaves = random_leaves(3, 41, dtype);
    const Tensor want = sum_on_cpu(leaves);
    for (const size_t shifted : {0U, 1U, 2U}) {
      std::vector<Tensor> on_device = upload_all(leaves);
      on_device[shifted] = upload_misaligned(leaves[shifted]);
      std::vector<Tensor> sums = {poisoned({41}, dtype)};
      peer_sum(stream_, on_device, sums);
      EXPECT_TRUE(same_bits(download(sums[0]), want));
    }
    std::vector<Tensor> sums = {upload_misaligned(poisoned_tensor({41}, dtype)),
                                poisoned({41}, dtype)};
    peer_sum(stream_, upload_all(leaves), sums);
    for (const Tensor& sum : sums) EXPECT_TRUE(same_bits(download(sum), want));
  }
}

TEST_F(CudaPeerSum, WritesItsSumsAndNothingElse) {
  const std::vector<Tensor> leaves = random_leaves(3, 100, Dtype::kF16);
  std::vector<Tensor> on_device = upload_all(leaves);
  Tensor room = poisoned({57}, Dtype::kF16);
  std::vector<Tensor> parts;
  for (const Tensor& leaf : on_device) parts.push_back(leaf.slice(8, 42));
  std::vector<Tensor> sums = {room.slice(8, 42), parts[2]};
  peer_sum(stream_, parts, sums);
  const Tensor want = sum_on_cpu(leaves).slice(8, 42);
  EXPECT_TRUE(same_bits(download(sums[0]), want));
  EXPECT_TRUE(same_bits(download(sums[1]), want));
  EXPECT_TRUE(same_bits(download(on_device[0]), leaves[0]));
  EXPECT_TRUE(same_bits(download(on_device[2]).slice(0, 8), leaves[2].slice(0, 8)));
  EXPECT_TRUE(same_bits(download(on_device[2]).slice(50, 50), leaves[2].slice(50, 50)));
  const Tensor around = download(room);
  EXPECT_TRUE(same_bits(around.slice(0, 8), poisoned_tensor({8}, Dtype::kF16)));
  EXPECT_TRUE(same_bits(around.slice(50, 7), poisoned_tensor({7}, Dtype::kF16)));
  peer_sum(stream_, on_device, {});
  EXPECT_TRUE(same_bits(download(on_device[1]), leaves[1]));
}

TEST_F(CudaPeerSum, CancelsAndOverflowsAsTheContractSays) {
  const auto sum_of = [&](const std::vector<double>& values, Dtype dtype) {
    std::vector<Tensor> leaves;
    for (const double value : values) leaves.push_back(upload(tensor_of({&value, 1}, {1}, dtype)));
    std::vector<Tensor> sums = {poisoned({1}, dtype)};
    peer_sum(stream_, leaves, sums);
    return get(download(sums[0]), 0);
  };
  testing::check_overflowing_nodes(sum_of);
  std::vector<double> leaves = {-1e8, 0, 1, 1, 1e8};
  do {
    EXPECT_EQ(sum_of(leaves, Dtype::kF32), reference::tree_sum(leaves, reference::kF32Format));
  } while (std::ranges::next_permutation(leaves).found);
}

TEST_F(CudaPeerSum, AsManyRanksAsTheContractSays) {
  std::vector<Tensor> leaves = random_leaves(129, 3, Dtype::kF32);
  std::vector<Tensor> on_device = upload_all(leaves);
  std::vector<Tensor> sums = {poisoned({3}, Dtype::kF32)};
  try {
    peer_sum(stream_, on_device, sums);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[peer_sum] leaves: got 129, expected 128 at most");
  }
  on_device.pop_back();
  leaves.pop_back();
  peer_sum(stream_, on_device, on_device);
  EXPECT_TRUE(same_bits(download(on_device[127]), sum_on_cpu(leaves)));
}

}  // namespace
}  // namespace lockstep::kernels::peer_sum_test
