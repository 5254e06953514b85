// What a rank says when others do not do their part.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "tests/support/all_reduces.h"
#include "tests/support/mailbox_ranks.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::spawn_mailbox_ranks;

// Runs `body` on `ranks` ranks and returns the error that it must end with.
CommError error_of(int ranks,
                   const std::function<void(Communicator&)>& body,
                   std::chrono::milliseconds stall_abort = kDefaultStallAbort) {
  try {
    spawn_mailbox_ranks(ranks, body, stall_abort);
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "no CommError";
  return CommError("none");
}

// Of 3 ranks the last does nothing until the others have given up.
CommError stall_of(const std::function<void(Communicator&)>& body) {
  std::atomic<int> failed = 0;
  return error_of(
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

TEST(MessageErrors, DeadlineNamesOperationLabelAndRank) {
  const CommError error = stall_of([](Communicator& peers) {
    const Tensor values = Tensor::zeros({10}, Dtype::kF32);
    peers.start_all_reduce({.values = values, .label = "bucket 2: fc.weight to fc.bias"})->wait();
  });
  EXPECT_THAT(error.what(),
              HasSubstr("gave up waiting in all_reduce #2 (bucket 2: fc.weight to fc.bias)"));
  EXPECT_EQ(error.why(), "rank 2 did not take part for 0.05 s");
  EXPECT_THAT(error.hint(), HasSubstr("--stall-abort"));
}

TEST(MessageErrors, DeadlineHoldsInEveryAlgorithm) {
  for (const Algorithm algorithm : testing::kExchanges) {
    const CommError error = stall_of([&](Communicator& peers) {
      const Tensor values = Tensor::zeros({10}, Dtype::kF32);
      peers.start_all_reduce({.values = values, .algorithm = algorithm, .label = "a"})->wait();
    });
    EXPECT_THAT(error.what(), HasSubstr("gave up waiting in all_reduce #2 (a)"));
  }
}

TEST(MessageErrors, DeadlineHoldsInBlockingCalls) {
  const CommError error = stall_of([](Communicator& peers) {
    std::vector<int64_t> values(10);
    peers.all_reduce_sum(std::span(values));
  });
  EXPECT_THAT(error.what(), HasSubstr("gave up waiting in all_reduce(int64) #2"));
  EXPECT_EQ(error.why(), "rank 2 did not take part for 0.05 s");
}

// The clock starts anew with every round: 16 steps of the ring, each late by less than the
// deadline.
TEST(MessageErrors, DeadlineIsForOneRound) {
  constexpr auto kLate = 25ms;
  spawn_mailbox_ranks(
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

// Whether they notice at the start or while they wait.
TEST(MessageErrors, FirstErrorEndsAll) {
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
  EXPECT_THROW(spawn_mailbox_ranks(5, body), DataError);
  EXPECT_EQ(lost, 4);
}

TEST(MessageErrors, LeavingEarlyFailsTheOthers) {
  const CommError error = error_of(2, [](Communicator& peers) {
    if (peers.rank() == 0) peers.barrier();
  });
  EXPECT_STREQ(error.what(), "rank 0 lost a peer in barrier #1");
  EXPECT_EQ(error.why(), "rank 1 is gone");
}

TEST(MessageErrors, DifferentCallsAreRefused) {
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

TEST(MessageErrors, DifferentSizesAreRefused) {
  for (const Algorithm algorithm : testing::kExchanges) {
    const CommError error = error_of(2, [&](Communicator& peers) {
      const Tensor values = Tensor::zeros({peers.rank() == 0 ? 4 : 6}, Dtype::kF32);
      peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
    });
    EXPECT_THAT(error.what(), HasSubstr("made different calls"));
  }
}

TEST(MessageErrors, BuffersMustFitTheRanks) {
  spawn_mailbox_ranks(2, [](Communicator& peers) {
    std::vector<float> values(5);
    std::vector<float> mine(3);
    std::vector<std::byte> all(7);
    EXPECT_THROW(peers.reduce_scatter_sum(values, mine), InternalError);
    EXPECT_THROW(peers.all_gather(std::as_bytes(std::span(mine)), all), InternalError);
    EXPECT_THROW(peers.broadcast(all, 2), InternalError);
  });
}

}  // namespace
}  // namespace lockstep::comm
