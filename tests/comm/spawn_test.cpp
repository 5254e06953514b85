#include "comm/spawn.h"

#include <atomic>
#include <span>
#include <stdexcept>

#include <gtest/gtest.h>

namespace lockstep::comm::spawn_test {
namespace {

TEST(Spawn, EachRankRunsOnceAndTheyTalk) {
  for (const int ranks : {1, 2, 5}) {
    std::atomic<int> calls = 0;
    spawn(ranks, [&](Communicator& peers) {
      ++calls;
      EXPECT_EQ(peers.size(), ranks);
      int64_t sum = peers.rank() + 1;
      peers.all_reduce_sum(std::span(&sum, 1));
      EXPECT_EQ(sum, ranks * (ranks + 1) / 2);
    });
    EXPECT_EQ(calls, ranks);
  }
}

TEST(Spawn, AFailureNamesItsRank) {
  try {
    spawn(3, [](Communicator& peers) {
      peers.barrier();
      if (peers.rank() == 2) throw DataError("bad image", "it is short", "another file");
      peers.barrier();
    });
    FAIL() << "no error";
  } catch (const RankError& error) {
    EXPECT_STREQ(error.what(), "rank 2: bad image");
    EXPECT_EQ(error.rank(), 2);
    EXPECT_EQ(error.code(), ExitCode::kData);
    EXPECT_EQ(error.why(), "it is short");
    EXPECT_EQ(error.hint(), "another file");
    EXPECT_THROW(std::rethrow_if_nested(error), DataError);
  }
}

TEST(Spawn, OtherExceptionsToo) {
  try {
    spawn(2, [](Communicator& peers) {
      if (peers.rank() == 1) throw std::runtime_error("out of luck");
      peers.barrier();
    });
    FAIL() << "no error";
  } catch (const RankError& error) {
    EXPECT_STREQ(error.what(), "rank 1: out of luck");
    EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
  }
}

TEST(Spawn, NoRanksAreRefused) {
  EXPECT_THROW(spawn(0, [](Communicator&) {}), UsageError);
}

}  // namespace
}  // namespace lockstep::comm::spawn_test
