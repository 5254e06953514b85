#include <csignal>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "comm/shared/thread_ranks.h"
#include "trainers/config/rank_machine.h"
#include "trainers/report/process.h"

namespace lockstep::trainers::rank_place_test {
namespace {

TEST(RankPlace, OfThisProcess) {
  const RankPlace here = this_place();
  EXPECT_FALSE(here.host.empty());
  EXPECT_EQ(here.pid, getpid());
}

// oneDNN points the stack pointer at memory of its own.
TEST(StopHandlers, HaveAStackOfTheirOwn) {
  install_stop_handlers();
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction action{};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_NE(action.sa_flags & SA_ONSTACK, 0);
    EXPECT_EQ(std::signal(signal, SIG_DFL), action.sa_handler);
  }
  stack_t stack{};
  ASSERT_EQ(sigaltstack(nullptr, &stack), 0);
  EXPECT_EQ(stack.ss_flags & SS_DISABLE, 0);
  EXPECT_GE(stack.ss_size, static_cast<size_t>(sysconf(_SC_SIGSTKSZ)));
}

TEST(RankPlace, EachRankHasItsOwn) {
  comm::spawn_ranks(3, [](Communicator& peers) {
    const int rank = peers.rank();
    const std::string host = rank == 1 ? std::string(1000, 'x') : fmt::format("host{}", rank);
    const std::vector<RankPlace> places = gather_places(
        peers, {.host = host, .pid = 10 + rank, .local_rank = 20 + rank, .device = "cpu"});
    ASSERT_EQ(places.size(), 3U);
    EXPECT_EQ(places[0].host, "host0");
    EXPECT_EQ(places[1].host, std::string(1000, 'x'));
    EXPECT_EQ(places[2].host, "host2");
    for (int r = 0; r < 3; ++r) {
      const RankPlace& place = places[static_cast<size_t>(r)];
      EXPECT_EQ(place.pid, 10 + r);
      EXPECT_EQ(place.local_rank, 20 + r);
      EXPECT_EQ(place.device, "cpu");
    }
  });
}

TEST(RankPlace, ALineAHostAndALineARank) {
  const std::vector<RankPlace> places = {
      {.host = "node7", .pid = 11, .local_rank = 0, .device = "cpu"},
      {.host = "node8", .pid = 22, .local_rank = 0, .device = "cuda"},
      {.host = "node7", .pid = 33, .local_rank = 1, .device = "cpu"}};
  EXPECT_EQ(host_lines(places),
            (std::vector<std::string>{"ranks on node7: 0 (local 0, cpu), 2 (local 1, cpu)",
                                      "ranks on node8: 1 (local 0, cuda)"}));
  EXPECT_EQ(rank_table(places),
            (std::vector<std::string>{"rank  local rank  device       pid  host",
                                      "   0           0  cpu           11  node7",
                                      "   1           0  cuda          22  node8",
                                      "   2           1  cpu           33  node7"}));
}

TEST(RankPlace, HostsAreNumberedInPlaceOfTheirNames) {
  std::vector<RankPlace> places(3);
  places[0].host = "node8";
  places[1].host = "node7";
  places[2].host = "node8";
  number_hosts(places);
  EXPECT_EQ(places[0].host, "host0");
  EXPECT_EQ(places[1].host, "host1");
  EXPECT_EQ(places[2].host, "host0");
}

}  // namespace
}  // namespace lockstep::trainers::rank_place_test
