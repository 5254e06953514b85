// Compares every algorithm with the definition of the sum, in shared memory and in other memory.
#include <algorithm>

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "tests/support/all_reduces.h"

namespace lockstep::comm::shared_all_reduce_test {
namespace {

using testing::ExpectedSum;

constexpr int64_t kOddOffset = 3;  // elements; aligns neither f32 nor f16

std::vector<ExpectedSum> expected_sums(int ranks, Dtype dtype) {
  std::vector<ExpectedSum> sums;
  for (const int64_t count : testing::collective_counts(ranks)) {
    sums.emplace_back(ranks, count, dtype);
  }
  return sums;
}

void check_all_reduces(Communicator& peers, const Tensor& memory, const ExpectedSum& want) {
  const int64_t count = want.tree.numel();
  const Tensor leaf = testing::placed_tensor(peers.rank(), peers.size(), count, want.tree.dtype());
  for (const Algorithm algorithm : testing::kExchanges) {
    Tensor values = memory.slice(kOddOffset, count);
    std::copy_n(leaf.bytes(), leaf.nbytes(), values.bytes());
    testing::check_all_reduce(peers, algorithm, values, want);
  }
}

void check_everywhere(int ranks, Dtype dtype) {
  const std::vector<ExpectedSum> sums = expected_sums(ranks, dtype);
  const Shape shape = {sums.back().tree.numel() + 2 * kOddOffset};
  spawn_ranks(ranks, [&](Communicator& peers) {
    for (const Tensor& memory : {peers.allocate(shape, dtype), Tensor::zeros(shape, dtype)}) {
      for (const ExpectedSum& want : sums) check_all_reduces(peers, memory, want);
    }
  });
}

class SharedAllReduce : public ::testing::TestWithParam<int> {};

TEST_P(SharedAllReduce, F32FollowsTheDefinition) {
  check_everywhere(GetParam(), Dtype::kF32);
}
TEST_P(SharedAllReduce, F16FollowsTheDefinition) {
  check_everywhere(GetParam(), Dtype::kF16);
}
TEST_P(SharedAllReduce, NeighborsAreLeftAlone) {
  spawn_ranks(GetParam(), [](Communicator& peers) {
    for (const Algorithm algorithm : testing::kExchanges) {
      Tensor memory = peers.allocate({1000}, Dtype::kF32);
      std::ranges::fill(memory.span<float>(), 1.0F);
      peers.start_all_reduce({.values = memory.slice(17, 900), .algorithm = algorithm})->wait();
      peers.barrier();
      for (int64_t i = 0; i < 1000; ++i) {
        const bool inside = 17 <= i && i < 917;
        ASSERT_EQ(memory.data<float>()[i], inside ? static_cast<float>(peers.size()) : 1.0F) << i;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedAllReduce, ::testing::Range(1, 18));

// Larger than the staging area.
TEST(SharedCollectives, GoPieceByPiece) {
  constexpr size_t kCount = 100003;
  spawn_ranks(3, [](Communicator& peers) {
    std::vector<float> floats(kCount, static_cast<float>(peers.rank()));
    peers.all_reduce_sum(std::span(floats));
    EXPECT_EQ(floats, std::vector<float>(kCount, 3));

    std::vector<int64_t> integers(kCount);
    for (size_t i = 0; i < kCount; ++i) integers[i] = static_cast<int64_t>(i) * (peers.rank() + 1);
    peers.all_reduce_sum(std::span(integers));
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(integers[i], static_cast<int64_t>(i) * 6);

    std::vector<int64_t> all(3 * kCount);
    integers[kCount - 1] = peers.rank();
    peers.all_gather(std::as_bytes(std::span(integers)), std::as_writable_bytes(std::span(all)));
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t at = i % kCount;
      const size_t want = at == kCount - 1 ? i / kCount : 6 * at;
      ASSERT_EQ(all[i], static_cast<int64_t>(want)) << i;
    }
    peers.broadcast(std::as_writable_bytes(std::span(integers)), 2);
    EXPECT_EQ(integers[kCount - 1], 2);
  });
}

}  // namespace
}  // namespace lockstep::comm::shared_all_reduce_test
