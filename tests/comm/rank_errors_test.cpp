// Tests the errors of ranks whose peers do not do their part, over any transport.
#include "tests/comm/rank_errors.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "comm/shared/thread_ranks.h"
#include "tests/support/all_reduces.h"
#include "tests/support/mailbox_ranks.h"
#include "tests/support/tcp_ranks.h"

namespace lockstep::comm::rank_errors_test {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using ::testing::HasSubstr;

struct Ranks {
  const char* name;
  testing::SpawnRanks& spawn;
};
void PrintTo(const Ranks& ranks, std::ostream* out) {
  *out << ranks.name;
}

class RankErrors : public ::testing::TestWithParam<Ranks> {
 protected:
  // The last of 3 ranks does nothing until the others have given up.
  static CommError stall_of(const std::function<void(Communicator&)>& body) {
    std::atomic<int> failed = 0;
    return error_of(
        GetParam().spawn,
        3,
        [&](Communicator& peers) {
          peers.barrier();
          if (peers.rank() == 2) {
            while (failed < 2) std::this_thread::sleep_for(1ms);
            return;
          }
          try {
            body(peers);
          } catch (const CommError&) {
            ++failed;
            throw;
          }
        },
        50ms);
  }
};

TEST_P(RankErrors, DeadlineNamesOperationLabelAndRank) {
  const CommError error = stall_of([](Communicator& peers) {
    const Tensor values = Tensor::zeros({10}, Dtype::kF32);
    peers.start_all_reduce({.values = values, .label = "bucket 2: fc.weight to fc.bias"})->wait();
  });
  EXPECT_THAT(error.what(),
              HasSubstr("gave up waiting in all_reduce #2 (bucket 2: fc.weight to fc.bias)"));
  EXPECT_EQ(error.why(), "rank 2 did not take part for 0.05 s");
  EXPECT_EQ(error.remedy(), Remedy::kLongerWait);
}

TEST_P(RankErrors, DeadlineHoldsInEveryAlgorithm) {
  for (const Algorithm algorithm : testing::kExchanges) {
    const CommError error = stall_of([&](Communicator& peers) {
      const Tensor values = Tensor::zeros({10}, Dtype::kF32);
      peers.start_all_reduce({.values = values, .algorithm = algorithm, .label = "a"})->wait();
    });
    EXPECT_THAT(error.what(), HasSubstr("gave up waiting in all_reduce #2 (a)"));
  }
}

TEST_P(RankErrors, DeadlineHoldsInBlockingCalls) {
  const CommError integers = stall_of([](Communicator& peers) {
    std::vector<int64_t> values(10);
    peers.all_reduce_sum(std::span(values));
  });
  EXPECT_THAT(integers.what(), HasSubstr("gave up waiting in all_reduce(int64) #2"));
  EXPECT_EQ(integers.why(), "rank 2 did not take part for 0.05 s");
  const CommError floats = stall_of([](Communicator& peers) {
    std::vector<float> values(10);
    peers.all_reduce_sum(std::span(values));
  });
  EXPECT_THAT(floats.what(), HasSubstr("gave up waiting in all_reduce #2"));
  EXPECT_EQ(floats.why(), "rank 2 did not take part for 0.05 s");
}

// The others may notice the error when they start the sum or while they wait.
TEST_P(RankErrors, FirstErrorEndsAll) {
  std::atomic<int> lost = 0;
  const auto body = [&](Communicator& peers) {
    const Tensor values = Tensor::zeros({100}, Dtype::kF32);
    try {
      if (peers.rank() == 3) throw DataError("bad image");
      const auto work = peers.start_all_reduce({.values = values});
      work->wait();
    } catch (const CommError&) {
      ++lost;
      throw;
    }
  };
  EXPECT_THROW(GetParam().spawn(5, body, kDefaultStallAbort), DataError);
  EXPECT_EQ(lost, 4);
}

TEST_P(RankErrors, LeavingEarlyFailsTheOthers) {
  const CommError error = error_of(GetParam().spawn, 2, [](Communicator& peers) {
    if (peers.rank() == 0) peers.barrier();
  });
  EXPECT_STREQ(error.what(), "rank 0 lost a peer in barrier #1");
  EXPECT_EQ(error.why(), "rank 1 is gone");
}

TEST_P(RankErrors, DifferentCallsAreRefused) {
  const CommError error = error_of(GetParam().spawn, 2, [](Communicator& peers) {
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

TEST_P(RankErrors, DifferentSizesAreRefused) {
  for (const Algorithm algorithm : testing::kExchanges) {
    const CommError error = error_of(GetParam().spawn, 2, [&](Communicator& peers) {
      const Tensor values = Tensor::zeros({peers.rank() == 0 ? 4 : 6}, Dtype::kF32);
      peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
    });
    EXPECT_THAT(error.what(), HasSubstr("made different calls"));
  }
  const CommError error = error_of(GetParam().spawn, 2, [](Communicator& peers) {
    std::vector<float> values(peers.rank() == 0 ? 4 : 6);
    peers.all_reduce_sum(std::span(values));
  });
  EXPECT_THAT(error.what(), HasSubstr("made different calls"));
}

TEST_P(RankErrors, BuffersMustFitTheRanks) {
  const auto body = [](Communicator& peers) {
    std::vector<float> mine(3);
    std::vector<std::byte> all(7);
    EXPECT_THROW(peers.all_gather(std::as_bytes(std::span(mine)), all), InternalError);
    EXPECT_THROW(peers.broadcast(all, 2), InternalError);
  };
  GetParam().spawn(2, body, kDefaultStallAbort);
}

INSTANTIATE_TEST_SUITE_P(Over,
                         RankErrors,
                         ::testing::Values(Ranks{"Mailboxes", testing::spawn_mailbox_ranks},
                                           Ranks{"Sockets", testing::spawn_tcp_ranks},
                                           Ranks{"SharedMemory", spawn_ranks}),
                         ::testing::PrintToStringParamName());

// A message that was already sent does not show the error, so the others start the sum and wait.
TEST(MessageErrors, FirstErrorEndsThoseUnderWay) {
  std::atomic<int> lost = 0;
  const auto body = [&](Communicator& peers) {
    const Tensor values = Tensor::zeros({100}, Dtype::kF32);
    try {
      const auto work = peers.start_all_reduce({.values = values});
      if (peers.rank() == 3) throw DataError("bad image");
      work->wait();
    } catch (const CommError&) {
      ++lost;
      throw;
    }
  };
  EXPECT_THROW(testing::spawn_mailbox_ranks(5, body), DataError);
  EXPECT_EQ(lost, 4);
}

// The deadline starts over in every round: the ring takes 16 steps, each late by less than the
// deadline.
TEST(MessageErrors, DeadlineIsForOneRound) {
  constexpr auto kLate = 25ms;
  testing::spawn_mailbox_ranks(
      9,
      [&](Communicator& peers) {
        const Tensor values = testing::integers_of(peers.rank(), 9, Dtype::kF32);
        const auto work = peers.start_all_reduce({.values = values, .algorithm = Algorithm::kRing});
        if (peers.rank() == 4) {
          while (!work->advance()) std::this_thread::sleep_for(kLate);
        }
        work->wait();
        testing::expect_sum_of_integers(values, 9);
      },
      10 * kLate);
}

}  // namespace
}  // namespace lockstep::comm::rank_errors_test
