#include "comm/tcp/rank_listener.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace lockstep::comm::tcp::rank_listener_test {
namespace {

using namespace std::chrono_literals;

// All of them are in the queue when the listener looks for the first time.
TEST(RankListener, AFloodOfStrangersKeepsARankThatCameFirst) {
  constexpr uint64_t kKey = 7;
  UniqueFd socket = listen_at(Address::any(AF_INET, 0));
  const Address address = Address::of_socket(socket.get());
  std::vector<UniqueFd> callers;
  for (size_t i = 0; i < 2 * RankListener::kMaxWaiting; ++i) {
    std::string problem;
    callers.push_back(connect_to(address, Clock::now() + 5s, problem));
    ASSERT_TRUE(callers.back().valid()) << problem;
    const Hello hello = {.key = kKey, .rank = 1, .size = 2};
    if (i > 0) continue;
    ASSERT_TRUE(send_all(callers[0].get(), std::as_bytes(std::span(&hello, 1)), Clock::now() + 5s));
  }
  RankListener listener(std::move(socket), kKey, {});
  const std::vector<JoiningRank> accepted = listener.accept(5s, {});
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(accepted[0].hello.rank, 1);
}

// Strangers have all descriptors but a few, and each has begun to introduce itself.
TEST(RankListener, WithoutDescriptorsTheOldestStrangersGo) {
  constexpr uint64_t kKey = 7;
  constexpr int kStrangers = 20;
  UniqueFd socket = listen_at(Address::any(AF_INET, 0));
  const Address address = Address::of_socket(socket.get());
  const Hello hello = {.key = kKey, .rank = 1, .size = 2};
  std::vector<UniqueFd> callers;
  for (int i = 0; i <= kStrangers; ++i) {
    std::string problem;
    callers.push_back(connect_to(address, Clock::now() + 5s, problem));
    ASSERT_TRUE(callers.back().valid()) << problem;
    const auto bytes = std::as_bytes(std::span(&hello, 1));
    const auto said = i < kStrangers ? bytes.first(1) : bytes;
    ASSERT_TRUE(send_all(callers.back().get(), said, Clock::now() + 5s));
  }
  RankListener listener(std::move(socket), kKey, {});
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const UniqueFd last(::dup(0));
  const rlimit few = {.rlim_cur = static_cast<rlim_t>(last.get()) + 5, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  std::vector<JoiningRank> accepted;
  for (int i = 0; i < 20 && accepted.empty(); ++i) accepted = listener.accept(100ms, {});
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(accepted[0].hello.rank, 1);
}

}  // namespace
}  // namespace lockstep::comm::tcp::rank_listener_test
