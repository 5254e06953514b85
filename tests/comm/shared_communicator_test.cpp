// Tests memory, byte counts and errors of ranks that share memory.
#include "comm/shared/shared_communicator.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "comm/shared/thread_ranks.h"
#include "tests/comm/rank_errors.h"
#include "tests/comm/rank_set.h"

namespace lockstep::comm::shared_communicator_test {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using ::testing::HasSubstr;
using testing::RankSet;

TEST(SharedMemory, StartsAsAlignedZerosOfTheRank) {
  spawn_ranks(3, [](Communicator& peers) {
    for (const int64_t count : {0, 1, 1000, 100000}) {
      Tensor memory = peers.allocate({count, 2}, Dtype::kBF16);
      EXPECT_EQ(memory.shape(), Shape({count, 2}));
      EXPECT_EQ(memory.dtype(), Dtype::kBF16);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.bytes()) % 64, 0U);
      for (size_t i = 0; i < memory.nbytes(); ++i) ASSERT_EQ(memory.bytes()[i], std::byte{0});
      std::fill_n(memory.bytes(), memory.nbytes(), static_cast<std::byte>(peers.rank()));
      peers.barrier();
      for (size_t i = 0; i < memory.nbytes(); ++i) {
        ASSERT_EQ(memory.bytes()[i], static_cast<std::byte>(peers.rank()));
      }
    }
  });
}

TEST(SharedMemory, OutlivesTheCommunicator) {
  Tensor kept;
  spawn_ranks(2, [&](Communicator& peers) {
    Tensor memory = peers.allocate({100}, Dtype::kF32);
    std::ranges::fill(memory.span<float>(), 1.0F);
    peers.start_all_reduce({.values = memory})->wait();
    if (peers.rank() == 1) kept = memory;
  });
  EXPECT_THAT(kept.span<float>(), ::testing::Each(2.0F));
}

TEST(SharedMemory, IsSummedWhereItLiesAndOtherMemoryAtOnce) {
  RankSet ranks(2);
  const std::vector<Tensor> memory = ranks.allocate(10);
  EXPECT_FALSE(ranks[0].start_all_reduce({.values = memory[0]})->advance());
  RankSet others(1);
  EXPECT_TRUE(others[0].start_all_reduce({.values = Tensor::zeros({10}, Dtype::kF32)})->advance());
}

// No rank waits for these sums, which are more than the queue can hold.
TEST(SharedMemory, SumsThatNobodyWaitsForAreDone) {
  constexpr int kSums = 80;
  spawn_ranks(2, [](Communicator& peers) {
    Tensor memory = peers.allocate({kSums}, Dtype::kF32);
    std::ranges::fill(memory.span<float>(), 1.0F);
    std::unique_ptr<Work> last;  // the queue runs them in order
    for (int i = 0; i < kSums; ++i) last = peers.start_all_reduce({.values = memory.slice(i, 1)});
    last->wait();
    EXPECT_THAT(memory.span<float>(), ::testing::Each(2.0F));
  });
}

// The traffic that each rank counts for one sum of `count` f32 values.
std::vector<Traffic> traffic_of(int ranks, int64_t count, Algorithm algorithm) {
  std::vector<Traffic> traffic(static_cast<size_t>(ranks));
  spawn_ranks(ranks, [&](Communicator& peers) {
    const Tensor values = peers.allocate({count}, Dtype::kF32);
    peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
    traffic[static_cast<size_t>(peers.rank())] = peers.traffic();
  });
  return traffic;
}

class TrafficOf : public ::testing::TestWithParam<int> {};

TEST_P(TrafficOf, TreeAndRingMoveTheLeastThereIs) {
  const int ranks = GetParam();
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    for (const int64_t count : {int64_t{1000} * ranks, int64_t{7919}}) {
      int64_t total = 0;
      for (const Traffic& each : traffic_of(ranks, count, algorithm)) {
        EXPECT_EQ(each.reduced_bytes, 4 * count);
        EXPECT_NEAR(static_cast<double>(each.moved_bytes),
                    8.0 * static_cast<double>(ranks - 1) * static_cast<double>(count) / ranks,
                    count % ranks == 0 ? 0 : 8.0 * ranks);
        total += each.moved_bytes;
      }
      EXPECT_EQ(total, 2 * (ranks - 1) * 4 * count);
    }
  }
}

TEST_P(TrafficOf, StarLoadsItsMaster) {
  const int ranks = GetParam();
  const std::vector<Traffic> traffic = traffic_of(ranks, 7919, Algorithm::kStar);
  for (size_t rank = 0; rank < traffic.size(); ++rank) {
    EXPECT_EQ(traffic[rank].moved_bytes, 4 * 7919 * (rank == 0 ? ranks - 1 : 1)) << rank;
    EXPECT_EQ(traffic[rank].reduced_bytes, 4 * 7919);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, TrafficOf, ::testing::Values(1, 2, 3, 4, 8, 17));

TEST(SharedTraffic, CountsWhatComesFromOthers) {
  spawn_ranks(4, [](Communicator& peers) {
    int64_t before = peers.traffic().moved_bytes;
    const auto moved = [&] {
      const int64_t now = peers.traffic().moved_bytes;
      return now - std::exchange(before, now);
    };
    std::vector<std::byte> all(4 * 100);
    peers.all_gather(std::span(all).first(100), all);
    EXPECT_EQ(moved(), 300);
    peers.broadcast(all, 2);
    EXPECT_EQ(moved(), peers.rank() == 2 ? 0 : 400);
    std::vector<int64_t> integers(10);
    peers.all_reduce_sum(std::span(integers));
    EXPECT_EQ(moved(), 240);
    std::vector<float> floats(40);
    peers.all_reduce_sum(std::span(floats));
    EXPECT_EQ(moved(), 240);
    peers.barrier();
    EXPECT_EQ(moved(), 0);
    EXPECT_EQ(peers.traffic().reduced_bytes, 80 + 160);
  });
}

TEST(SharedAlgorithms, NoneExchangesNothing) {
  spawn_ranks(2, [](Communicator& peers) {
    if (peers.rank() == 1) return;  // the other rank does not wait for it
    Tensor values = Tensor::zeros({10}, Dtype::kF32);
    *values.data<float>() = 3;
    EXPECT_TRUE(
        peers.start_all_reduce({.values = values, .algorithm = Algorithm::kNone})->advance());
    EXPECT_EQ(*values.data<float>(), 3);
    EXPECT_EQ(peers.traffic().reduced_bytes, 0);
  });
}

TEST(SharedAlgorithms, RefusesWhatItDoesNotHave) {
  RankSet ranks(2);
  try {
    ranks[0].start_all_reduce(
        {.values = Tensor::zeros({1}, Dtype::kF32), .algorithm = Algorithm::kLibrary});
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "there is no all-reduce of MPI's own");
  }
  EXPECT_THROW(ranks[0].start_all_reduce({.values = Tensor::zeros({1}, Dtype::kI64)}), DtypeError);
}

TEST(SharedErrors, DifferentAlgorithmsAreNamed) {
  const CommError error = error_of(spawn_ranks, 2, [](Communicator& peers) {
    const Tensor values = peers.allocate({4}, Dtype::kF32);
    const Algorithm algorithm = peers.rank() == 0 ? Algorithm::kTree : Algorithm::kRing;
    peers.start_all_reduce({.values = values, .algorithm = algorithm, .label = "bucket 1"})->wait();
  });
  EXPECT_THAT(error.what(), HasSubstr("made different calls"));
  EXPECT_THAT(error.why(), HasSubstr("all_reduce #2 (bucket 1) with 16 bytes, "));
  EXPECT_THAT(error.why(), HasSubstr(", tree over f32 in segment 0 from byte 0 on"));
  EXPECT_THAT(error.why(), HasSubstr(", ring over f32 in segment 0 from byte 0 on"));
}

TEST(SharedErrors, DifferentPlacesAreNamed) {
  const CommError error = error_of(spawn_ranks, 2, [](Communicator& peers) {
    const Tensor memory = peers.allocate({8}, Dtype::kF32);
    peers.start_all_reduce({.values = memory.slice(peers.rank(), 4)})->wait();
  });
  EXPECT_THAT(error.why(), HasSubstr("segment 0 from byte 0 on"));
  EXPECT_THAT(error.why(), HasSubstr("segment 0 from byte 4 on"));
}

TEST(SharedErrors, OneRankOfSeventeenInAnotherCallIsFound) {
  const CommError error = error_of(spawn_ranks, 17, [](Communicator& peers) {
    std::vector<std::byte> bytes(peers.rank() == 16 ? 7 : 8);
    peers.broadcast(bytes, 0);
  });
  EXPECT_THAT(error.why(), HasSubstr("rank 16 is in broadcast #1 with 7 bytes"));
}

// Waits until `failures` of the others have failed, so that this rank is missing for all of them.
void stay_until(const std::atomic<int>& failed, int failures) {
  while (failed < failures) std::this_thread::sleep_for(1ms);
}

TEST(SharedErrors, StalledRanksAndTheBucketAreNamed) {
  for (const Algorithm algorithm : testing::kExchanges) {
    std::atomic<int> failed = 0;
    const CommError error = error_of(
        spawn_ranks,
        4,
        [&](Communicator& peers) {
          const Tensor values = peers.allocate({100}, Dtype::kF32);
          if (peers.rank() % 2 == 1) return stay_until(failed, 2);
          try {
            peers
                .start_all_reduce({.values = values,
                                   .algorithm = algorithm,
                                   .label = "bucket 2: layer4.weight to fc.bias"})
                ->wait();
          } catch (const CommError&) {
            ++failed;
            throw;
          }
        },
        60ms);
    EXPECT_THAT(error.what(),
                HasSubstr("gave up waiting in all_reduce #2 (bucket 2: layer4.weight to fc.bias)"));
    EXPECT_EQ(error.why(), "ranks 1, 3 did not take part for 0.06 s");
  }
}

// All other ranks of a ring wait, directly or indirectly, for a rank that enters the sum and then
// stops.
TEST(SharedErrors, ARankThatStopsInsideASumIsNamedByAll) {
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    std::atomic<int> failed = 0;
    spawn_ranks(
        4,
        [&](Communicator& peers) {
          const Tensor values = peers.allocate({100}, Dtype::kF32);
          const auto work = peers.start_all_reduce({.values = values, .algorithm = algorithm});
          if (peers.rank() == 1) return stay_until(failed, 3);
          try {
            work->wait();
          } catch (const CommError& error) {
            EXPECT_EQ(error.why(), "rank 1 did not take part for 0.06 s");
            ++failed;
            stay_until(failed, 3);
          }
        },
        60ms);
    EXPECT_EQ(failed, 3);
  }
}

TEST(SharedErrors, LostRanksEndTheWaitAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const CommError error = error_of(spawn_ranks, 2, [](Communicator& peers) {
    const Tensor values = peers.allocate({100}, Dtype::kF32);
    if (peers.rank() == 1) return;
    peers.start_all_reduce({.values = values, .label = "bucket 0"})->wait();
  });
  EXPECT_STREQ(error.what(), "rank 0 lost a peer in all_reduce #2 (bucket 0)");
  EXPECT_EQ(error.why(), "rank 1 is gone");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST(SharedErrors, ARankMayEndWhenItsPartIsDone) {
  spawn_ranks(3, [](Communicator& peers) {
    Tensor values = peers.allocate({100}, Dtype::kF32);
    std::ranges::fill(values.span<float>(), 1.0F);
    const auto work = peers.start_all_reduce({.values = values, .algorithm = Algorithm::kStar});
    if (peers.rank() == 2) std::this_thread::sleep_for(200ms);  // rank 1 ends, rank 0 waits
    work->wait();
    EXPECT_THAT(values.span<float>(), ::testing::Each(3.0F));
  });
}

}  // namespace
}  // namespace lockstep::comm::shared_communicator_test
