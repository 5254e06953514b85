#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "comm/thread_communicator.h"
#include "trainers/report/process.h"

namespace lockstep::trainers::rank_place_test {
namespace {

TEST(RankPlace, OfThisProcess) {
  const RankPlace here = this_place();
  EXPECT_FALSE(here.host.empty());
  EXPECT_EQ(here.pid, getpid());
}

TEST(RankPlace, EachRankHasItsOwn) {
  comm::spawn_ranks(3, [](Communicator& peers) {
    const int rank = peers.rank();
    const std::string host = rank == 1 ? std::string(1000, 'x') : fmt::format("host{}", rank);
    const std::vector<RankPlace> places = gather_places(peers, {.host = host, .pid = 10 + rank});
    ASSERT_EQ(places.size(), 3U);
    EXPECT_EQ(places[0].host, "host0");
    EXPECT_EQ(places[1].host, std::string(1000, 'x'));
    EXPECT_EQ(places[2].host, "host2");
    for (int r = 0; r < 3; ++r) EXPECT_EQ(places[static_cast<size_t>(r)].pid, 10 + r);
  });
}

}  // namespace
}  // namespace lockstep::trainers::rank_place_test
