#include "comm/thread_communicator.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "comm/single.h"
#include "tests/support/collectives.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

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

// Runs `body` on `ranks` ranks and returns the error that it must end with.
CommError error_of(int ranks,
                   const std::function<void(Communicator&)>& body,
                   std::chrono::milliseconds stall_abort = kDefaultStallAbort) {
  try {
    spawn_ranks(ranks, body, stall_abort);
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "no CommError";
  return CommError("none");
}

TEST(ThreadCommunicator, DeadlineNamesOperationAndRank) {
  std::atomic<int> failed = 0;
  const CommError error = error_of(
      3,
      [&](Communicator& peers) {
        peers.barrier();
        if (peers.rank() == 2) {
          while (failed < 2) std::this_thread::sleep_for(1ms);
          return;
        }
        std::vector<float> values(10);
        try {
          peers.all_reduce_sum(std::span(values));
        } catch (const CommError&) {
          ++failed;
          throw;
        }
      },
      50ms);
  EXPECT_THAT(error.what(), HasSubstr("gave up waiting in all_reduce #2"));
  EXPECT_EQ(error.why(), "rank 2 did not take part for 0.05 s");
  EXPECT_THAT(error.hint(), HasSubstr("--stall-abort"));
}

TEST(ThreadCommunicator, FirstErrorEndsAll) {
  std::atomic<int> lost = 0;
  EXPECT_THROW(spawn_ranks(5,
                           [&](Communicator& peers) {
                             if (peers.rank() == 3) throw DataError("bad image");
                             try {
                               peers.barrier();
                             } catch (const CommError&) {
                               ++lost;
                               throw;
                             }
                           }),
               DataError);
  EXPECT_EQ(lost, 4);
}

TEST(ThreadCommunicator, LeavingEarlyFailsTheOthers) {
  const CommError error = error_of(2, [](Communicator& peers) {
    if (peers.rank() == 0) peers.barrier();
  });
  EXPECT_STREQ(error.what(), "rank 0 lost a peer in barrier #1");
  EXPECT_EQ(error.why(), "rank 1 is gone");
}

TEST(ThreadCommunicator, DifferentCallsAreRefused) {
  const CommError error = error_of(2, [](Communicator& peers) {
    std::vector<float> values(4);
    if (peers.rank() == 0) {
      peers.all_reduce_sum(std::span(values));
    } else {
      peers.barrier();
    }
  });
  EXPECT_THAT(error.what(), HasSubstr("made different calls"));
  EXPECT_THAT(error.why(), HasSubstr("all_reduce #1"));
  EXPECT_THAT(error.why(), HasSubstr("barrier #1"));
}

TEST(ThreadCommunicator, DifferentSizesAreRefused) {
  const CommError error = error_of(2, [](Communicator& peers) {
    std::vector<float> values(peers.rank() == 0 ? 4 : 6);
    peers.all_reduce_sum(std::span(values));
  });
  EXPECT_THAT(error.what(), HasSubstr("made different calls"));
}

}  // namespace
}  // namespace lockstep::comm
