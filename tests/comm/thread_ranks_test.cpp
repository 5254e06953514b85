#include "comm/shared/thread_ranks.h"

#include <atomic>

#include <gtest/gtest.h>

#include "comm/single.h"
#include "tests/support/collectives.h"

namespace lockstep::comm::thread_ranks_test {
namespace {

class RankCounts : public ::testing::TestWithParam<int> {};

TEST_P(RankCounts, FloatSumsAreExactOnIntegers) {
  spawn_ranks(GetParam(), testing::check_float_sums);
}
TEST_P(RankCounts, FloatSumsFollowTheTree) {
  spawn_ranks(GetParam(), testing::check_sums_in_tree_order);
}
TEST_P(RankCounts, IntegerSumsAreExact) {
  spawn_ranks(GetParam(), testing::check_int64_sums);
}
TEST_P(RankCounts, EveryRootBroadcasts) {
  spawn_ranks(GetParam(), testing::check_broadcasts);
}
TEST_P(RankCounts, AllGathersInRankOrder) {
  spawn_ranks(GetParam(), testing::check_all_gathers);
}

TEST_P(RankCounts, BarrierWaitsForAll) {
  std::atomic<int> arrived = 0;
  spawn_ranks(GetParam(), [&](Communicator& peers) {
    ++arrived;
    peers.barrier();
    EXPECT_EQ(arrived, peers.size());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RankCounts, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 17));

TEST(SingleCommunicator, DoesWhatOneRankDoes) {
  SingleCommunicator alone;
  testing::check_collectives(alone);
}

TEST(SingleCommunicator, CountsWhatIsReducedAsOthersDo) {
  SingleCommunicator alone;
  const Tensor values = Tensor::zeros({10}, Dtype::kF32);
  alone.start_all_reduce({.values = values, .algorithm = Algorithm::kNone})->wait();
  EXPECT_EQ(alone.traffic().reduced_bytes, 0);
  alone.start_all_reduce({.values = values})->wait();
  EXPECT_EQ(alone.traffic().reduced_bytes, 40);
}

}  // namespace
}  // namespace lockstep::comm::thread_ranks_test
