// Tests the guarantees of the ranks' counters, whichever rank is slow.
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include <gmock/gmock.h>

#include "comm/shared/control.h"
#include "comm/shared/thread_ranks.h"
#include "tests/comm/rank_set.h"
#include "tests/support/all_reduces.h"

namespace lockstep::comm::shared_protocol_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::kExchanges;
using testing::RankSet;

static_assert(reached(5, 5) && reached(6, 5) && !reached(4, 5));
static_assert(reached(2, 0xfffffffe) && !reached(0xfffffffe, 2));

constexpr float kPoison = 1e30F;

// One rank of a random schedule. It starts and polls sums at random times, and overwrites the
// values as soon as they are its own again.
struct Player {
  Communicator& peers;
  Tensor memory;
  std::vector<std::unique_ptr<Work>> works{};
  size_t over = 0;
};

constexpr size_t kSums = 6;
constexpr int64_t kEach = 40;

float value_of(int rank, size_t sum) {
  return static_cast<float>(rank + 1) * static_cast<float>(sum + 1);
}

void start_next(Player& player) {
  const size_t sum = player.works.size();
  Tensor values = player.memory.slice(static_cast<int64_t>(sum) * kEach, kEach);
  std::ranges::fill(values.span<float>(), value_of(player.peers.rank(), sum));
  player.works.push_back(player.peers.start_all_reduce(
      {.values = values, .algorithm = kExchanges[sum % std::size(kExchanges)]}));
}

void end_one(Player& player) {
  const size_t sum = player.over;
  if (sum == player.works.size() || !player.works[sum]->advance()) return;
  const int ranks = player.peers.size();
  Tensor values = player.memory.slice(static_cast<int64_t>(sum) * kEach, kEach);
  for (const float value : values.span<float>()) {
    ASSERT_EQ(value, value_of(ranks * (ranks + 1) / 2 - 1, sum)) << "sum " << sum;
  }
  std::ranges::fill(values.span<float>(), kPoison);
  ++player.over;
}

void play(RankSet& ranks, const std::vector<Tensor>& memory, uint64_t seed) {
  std::vector<Player> players;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    players.push_back({ranks[rank], memory[static_cast<size_t>(rank)]});
  }
  std::mt19937_64 rng(seed);
  const auto unfinished = [](const Player& player) { return player.over < kSums; };
  for (int turn = 0; std::ranges::any_of(players, unfinished); ++turn) {
    ASSERT_LT(turn, 100000) << "nobody can go on";
    Player& player = players[rng() % players.size()];
    if (player.works.size() < kSums && rng() % 2 == 0) {
      start_next(player);
    } else {
      end_one(player);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(SharedProtocol, NoScheduleOfTheRanksChangesASum) {
  for (const int size : {1, 2, 3, 4, 7}) {
    RankSet ranks(size);
    const std::vector<Tensor> memory = ranks.allocate(kSums * kEach);
    for (uint64_t seed = 0; seed < 100; ++seed) {
      play(ranks, memory, seed);
      ASSERT_FALSE(HasFatalFailure()) << size << " ranks, seed " << seed;
    }
  }
}

TEST(SharedProtocol, NothingRunsBeforeAllHaveEntered) {
  RankSet ranks(3);
  for (const Algorithm algorithm : kExchanges) {
    std::vector<Tensor> memory = ranks.allocate(30);
    for (Tensor& values : memory) std::ranges::fill(values.span<float>(), 1.0F);
    for (int late = 0; late < 3; ++late) {
      std::vector<std::unique_ptr<Work>> works;
      for (int rank = 0; rank < 3; ++rank) {
        if (rank == late) continue;
        works.push_back(ranks[rank].start_all_reduce(
            {.values = memory[static_cast<size_t>(rank)], .algorithm = algorithm}));
      }
      for (int i = 0; i < 10; ++i) {
        for (const auto& work : works) EXPECT_FALSE(work->advance());
      }
      for (Tensor& values : memory) {
        EXPECT_THAT(values.span<float>(), ::testing::Each(static_cast<float>(std::pow(3, late))));
      }
      works.push_back(ranks[late].start_all_reduce(
          {.values = memory[static_cast<size_t>(late)], .algorithm = algorithm}));
      ranks.together([&](int i) { works[static_cast<size_t>(i)]->wait(); });
    }
  }
}

TEST(SharedProtocol, ManySumsMayBeUnderWay) {
  constexpr size_t kMany = 200;
  spawn_ranks(3, [](Communicator& peers) {
    Tensor memory = peers.allocate({kMany}, Dtype::kF32);
    std::vector<std::unique_ptr<Work>> works;
    for (size_t i = 0; i < kMany; ++i) {
      Tensor value = memory.slice(static_cast<int64_t>(i), 1);
      *value.data<float>() = static_cast<float>(i);
      works.push_back(peers.start_all_reduce(
          {.values = value, .algorithm = kExchanges[i % std::size(kExchanges)]}));
    }
    for (size_t i = 0; i < kMany; ++i) {
      const size_t odd_order = i * 77 % kMany;
      if (i % 2 == 0) works[odd_order]->advance();
      works[odd_order]->wait();
      EXPECT_TRUE(works[odd_order]->advance());
      ASSERT_EQ(memory.data<float>()[odd_order], 3 * static_cast<float>(odd_order));
    }
  });
}

// Values are overwritten immediately, and the next sum begins.
TEST(SharedProtocol, ValuesAreFreeWhenTheSumIsOver) {
  constexpr int64_t kCount = 5000;
  for (const Algorithm algorithm : kExchanges) {
    spawn_ranks(3, [&](Communicator& peers) {
      Tensor memory = peers.allocate({kCount}, Dtype::kF32);
      for (int i = 1; i <= 100; ++i) {
        std::ranges::fill(memory.span<float>(), static_cast<float>(i));
        peers.start_all_reduce({.values = memory, .algorithm = algorithm})->wait();
        for (const float value : memory.span<float>()) {
          ASSERT_EQ(value, static_cast<float>(3 * i));
        }
      }
    });
  }
}

// Starts its counters shortly before they wrap.
class WrappingHost : public ThreadHost {
 public:
  using ThreadHost::ThreadHost;

  Segment allocate(size_t bytes_per_rank, const Operation& operation) override {
    Segment segment = ThreadHost::allocate(bytes_per_rank, operation);
    if (!control_done_) {
      for (std::byte* part : segment.parts) {
        auto& state = *reinterpret_cast<RankState*>(part);
        state.posted.value = 0U - 20;
        state.phase.value = 0U - 10;
      }
    }
    control_done_ = true;
    return segment;
  }

 private:
  bool control_done_ = false;
};

TEST(SharedProtocol, CountersMayWrapAround) {
  RankSet ranks(
      3, [](ThreadGroup& group, int rank) { return std::make_unique<WrappingHost>(group, rank); });
  const std::vector<Tensor> memory = ranks.allocate(kSums * kEach);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    play(ranks, memory, seed);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST(SharedProtocol, SleepersAreWoken) {
  Counter counter{};
  std::atomic<bool> awake = false;
  std::thread sleeper([&] {
    while (!counter.has_reached(2)) counter.sleep_below(2, 60s);
    awake = true;
  });
  while (counter.sleepers == 0) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  counter.raise_to(1);
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(awake);
  const auto start = std::chrono::steady_clock::now();
  counter.raise_to(2);
  sleeper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

}  // namespace
}  // namespace lockstep::comm::shared_protocol_test
