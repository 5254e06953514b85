// Tests MessageCommunicator on ranks that exchange messages through mailboxes.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "tests/support/all_reduces.h"
#include "tests/support/mailbox_ranks.h"

namespace lockstep::comm::message_collectives_test {
namespace {

using testing::ExpectedSum;
using testing::kExchanges;
using testing::spawn_mailbox_ranks;

// Compares every algorithm with the definition of the sum.
void check_definition(int ranks, Dtype dtype) {
  for (const int64_t count : testing::collective_counts(ranks)) {
    const ExpectedSum want(ranks, count, dtype);
    spawn_mailbox_ranks(ranks, [&](Communicator& peers) {
      for (const Algorithm algorithm : kExchanges) {
        testing::check_all_reduce(peers, algorithm, want);
      }
    });
  }
}

class MessageRanks : public ::testing::TestWithParam<int> {};

TEST_P(MessageRanks, F32FollowsTheDefinition) {
  check_definition(GetParam(), Dtype::kF32);
}
TEST_P(MessageRanks, F16FollowsTheDefinition) {
  check_definition(GetParam(), Dtype::kF16);
}
TEST_P(MessageRanks, Bf16FollowsTheDefinition) {
  check_definition(GetParam(), Dtype::kBF16);
}
TEST_P(MessageRanks, BlockingSumsFollowTheTree) {
  spawn_mailbox_ranks(GetParam(), testing::check_sums_in_tree_order);
}
TEST_P(MessageRanks, IntegerSumsAreExact) {
  spawn_mailbox_ranks(GetParam(), testing::check_int64_sums);
}
TEST_P(MessageRanks, EveryRootBroadcasts) {
  spawn_mailbox_ranks(GetParam(), testing::check_broadcasts);
}
TEST_P(MessageRanks, AllGathersInRankOrder) {
  spawn_mailbox_ranks(GetParam(), testing::check_all_gathers);
}
TEST_P(MessageRanks, EveryAlgorithmSumsIntegersExactly) {
  spawn_mailbox_ranks(GetParam(), [](Communicator& peers) {
    for (const Algorithm algorithm : kExchanges) {
      testing::check_sums_of_integers(peers, algorithm, Dtype::kF32);
      testing::check_sums_of_integers(peers, algorithm, Dtype::kF16);
    }
  });
}
TEST_P(MessageRanks, WorksFinishInAnyOrder) {
  spawn_mailbox_ranks(GetParam(), testing::check_works_in_flight);
}
TEST_P(MessageRanks, MoveWhatTheScheduleSays) {
  spawn_mailbox_ranks(GetParam(), testing::check_traffic);
}
TEST_P(MessageRanks, BarrierWaitsForAll) {
  std::atomic<int> arrived = 0;
  spawn_mailbox_ranks(GetParam(), [&](Communicator& peers) {
    ++arrived;
    peers.barrier();
    EXPECT_EQ(arrived, peers.size());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, MessageRanks, ::testing::Range(1, 18));

TEST(MessageAllReduce, AnyShapeIsSummedWhereItLies) {
  spawn_mailbox_ranks(3, [](Communicator& peers) {
    const Tensor memory = testing::integers_of(peers.rank(), 2 * 3 * 5 * 7 + 9, Dtype::kF32);
    for (const Algorithm algorithm : kExchanges) {
      Tensor values = memory.slice(9, 2 * 3 * 5 * 7).view({2, 3, 5, 7});
      std::ranges::fill(values.span<float>(), static_cast<float>(peers.rank()));
      peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
      EXPECT_THAT(values.span<float>(), ::testing::Each(3.0F));
      for (int64_t i = 0; i < 9; ++i) {
        EXPECT_EQ(testing::get(memory, i), testing::integer_at(peers.rank(), i));
      }
    }
  });
}

TEST(MessageAllReduce, NoneLeavesTheValuesAndMovesNothing) {
  spawn_mailbox_ranks(3, [](Communicator& peers) {
    const Tensor values = testing::integers_of(peers.rank(), 10, Dtype::kF32);
    const auto work = peers.start_all_reduce({.values = values, .algorithm = Algorithm::kNone});
    EXPECT_TRUE(work->advance());
    work->wait();
    EXPECT_TRUE(testing::same_bits(values, testing::integers_of(peers.rank(), 10, Dtype::kF32)));
    EXPECT_EQ(peers.traffic().moved_bytes, 0);
    EXPECT_EQ(peers.traffic().reduced_bytes, 0);
  });
}

TEST(MessageAllReduce, RefusesWhatItCannotSum) {
  spawn_mailbox_ranks(2, [](Communicator& peers) {
    const Tensor floats = Tensor::zeros({3}, Dtype::kF32);
    const Tensor integers = Tensor::zeros({3}, Dtype::kI32);
    try {
      peers.start_all_reduce({.values = floats, .algorithm = Algorithm::kLibrary});
      ADD_FAILURE() << "no error";
    } catch (const UsageError& error) {
      EXPECT_STREQ(error.what(), "there is no all-reduce of MPI's own");
      EXPECT_EQ(error.why(), "these ranks do not talk through MPI");
      EXPECT_EQ(error.hint(), "use the tree, the ring or the star");
      EXPECT_EQ(error.remedy(), Remedy::kAlgorithm);
    }
    EXPECT_THROW(peers.start_all_reduce({.values = integers}), DtypeError);
    testing::check_works_in_flight(peers);
  });
}

// A rank that computes after its first advance() delays only the ranks that need its part.
TEST(MessageAllReduce, AdvanceNeverWaits) {
  std::atomic<bool> late = false;
  spawn_mailbox_ranks(2, [&](Communicator& peers) {
    const Tensor values = testing::integers_of(peers.rank(), 100, Dtype::kF32);
    if (peers.rank() == 1) {
      while (!late) std::this_thread::yield();
    }
    const auto work = peers.start_all_reduce({.values = values});
    if (peers.rank() == 0) {
      EXPECT_FALSE(work->advance());
      late = true;
    }
    work->wait();
    testing::expect_sum_of_integers(values, 2);
  });
}

}  // namespace
}  // namespace lockstep::comm::message_collectives_test
