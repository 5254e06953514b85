#include <array>
#include <cmath>
#include <cstring>
#include <mutex>

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "engine/step/step_figures.h"

namespace lockstep::trainers::step_window_test {
namespace {

// The sum of these losses depends on the order.
constexpr float kLosses[] = {1e8F, 1.25F, -1e8F, 3.5F, 0.1F, 7e7F, -7e7F, 0.3F};

// A micro-step whose shards have these losses.
nn::CrossEntropy micro_step(std::span<const float> shards, int32_t target_rank = 0) {
  Tensor leaves = Tensor::empty({std::ssize(shards)}, Dtype::kF32);
  std::ranges::copy(shards, leaves.data<float>());
  Tensor target = Tensor::empty({1}, Dtype::kI32);
  *target.data<int32_t>() = target_rank;
  return {.loss = Var(leaves), .losses = {}, .target_rank = target};
}

// The tree sum, computed by hand: the left subtree holds the largest power of two below the length.
float tree_of(std::span<const float> v) {
  if (v.size() == 1) return v[0];
  size_t left = 1;
  while (2 * left < v.size()) left *= 2;
  return tree_of(v.first(left)) + tree_of(v.subspan(left));
}

// The loss of one step over `ranks` ranks. Each rank has its part of the shards in all micro-steps;
// the loss of a leaf is losses[micro * shards + shard].
float loss_of(int ranks, int64_t shards, int64_t micro_steps, std::span<const float> losses) {
  float loss = NAN;
  std::mutex mutex;
  comm::spawn_ranks(ranks, [&](Communicator& peers) {
    StepWindow window;
    const int64_t mine = shards / ranks;
    for (int64_t micro = 0; micro < micro_steps; ++micro) {
      const int64_t first = micro * shards + peers.rank() * mine;
      window.add(micro_step(losses.subspan(static_cast<size_t>(first), static_cast<size_t>(mine))));
    }
    window.end_step({});
    const WindowTotals totals = window.exchange(peers, false);
    const std::lock_guard lock(mutex);
    if (peers.rank() == 0) loss = totals.losses.at(0);
  });
  return loss;
}

TEST(StepWindow, LossIsOneTreeOverShardsAndRanks) {
  const float want = tree_of(kLosses);
  for (const int ranks : {1, 2, 4, 8}) EXPECT_EQ(loss_of(ranks, 8, 1, kLosses), want) << ranks;
}

TEST(StepWindow, MicroStepsOfOneShardAreTheShardsOfOneMicroStep) {
  for (size_t n = 1; n <= std::size(kLosses); ++n) {
    const std::span<const float> losses = std::span(kLosses).first(n);
    const float want = tree_of(losses);
    EXPECT_EQ(loss_of(1, 1, std::ssize(losses), losses), want) << n;
    EXPECT_EQ(loss_of(static_cast<int>(n), std::ssize(losses), 1, losses), want) << n;
  }
}

TEST(StepWindow, AShardsLeafIsTheTreeOverItsMicroSteps) {
  float shards[2] = {};
  for (size_t shard = 0; shard < 2; ++shard) {
    const float micro[] = {kLosses[shard], kLosses[2 + shard], kLosses[4 + shard]};
    shards[shard] = tree_of(micro);
  }
  const auto six = std::span(kLosses).first(6);
  for (const int ranks : {1, 2}) EXPECT_EQ(loss_of(ranks, 2, 3, six), shards[0] + shards[1]);
}

TEST(StepWindow, KeepsStepsApartAndCountsThemTogether) {
  comm::SingleCommunicator alone;
  StepWindow window;
  for (const int32_t target_rank : {0, 3, 7}) {
    window.add(micro_step(std::span(kLosses).subspan(3, 1), target_rank));
    window.end_step({.own = 0.5, .exposed = 0.25, .hidden = 1});
  }
  const WindowTotals totals = window.exchange(alone, true);
  EXPECT_EQ(totals.losses, (std::vector<float>{3.5F, 3.5F, 3.5F}));
  EXPECT_EQ(totals.correct1, 1);
  EXPECT_EQ(totals.correct5, 2);
  EXPECT_EQ(totals.images, 3);
  EXPECT_TRUE(totals.stop);
  ASSERT_EQ(totals.ranks.size(), 1U);
  EXPECT_EQ(totals.ranks[0].own, 1.5);
  EXPECT_EQ(totals.ranks[0].exposed, 0.75);
  EXPECT_EQ(totals.ranks[0].hidden, 3);

  window.add(micro_step(kLosses));
  window.end_step({.own = 2});
  const WindowTotals next = window.exchange(alone, false);
  EXPECT_EQ(next.losses.size(), 1U);
  EXPECT_EQ(next.images, 1);
  EXPECT_EQ(next.ranks[0].own, 2);
  EXPECT_FALSE(next.stop);
}

TEST(StepWindow, TellsAllRanksWhatEachSpent) {
  comm::spawn_ranks(3, [](Communicator& peers) {
    StepWindow window;
    window.add(micro_step(std::span(kLosses).first(1)));
    window.end_step({.own = 1.0 + peers.rank()});
    const WindowTotals totals = window.exchange(peers, peers.rank() == 2);
    ASSERT_EQ(totals.ranks.size(), 3U);
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(totals.ranks[rank].own, 1.0 + static_cast<double>(rank));
    }
    EXPECT_TRUE(totals.stop);
  });
}

TEST(SlowestRank, IsComparedWithTheOthersMean) {
  const RankSeconds three[] = {{.own = 1}, {.own = 3, .exposed = 9}, {.own = 2}};
  EXPECT_EQ(slowest_rank(three).rank, 1);
  EXPECT_DOUBLE_EQ(slowest_rank(three).skew, 1);
  const RankSeconds equal[] = {{.own = 2}, {.own = 2}};
  EXPECT_EQ(slowest_rank(equal).skew, 0);
  const RankSeconds alone[] = {{.own = 2}};
  EXPECT_EQ(slowest_rank(alone).rank, 0);
  EXPECT_EQ(slowest_rank(alone).skew, 0);
  const RankSeconds nothing[] = {{}, {}};
  EXPECT_EQ(slowest_rank(nothing).skew, 0);
}

TEST(StepWindow, BlamesTheLoaderThatWasWaitedForMost) {
  const RankSeconds quick = {.own = 2, .exposed = 2, .loader = {.waited = 0.1, .work = {9, 9, 9}}};
  RankSeconds slow = {.own = 3, .exposed = 1, .loader = {.waited = 1, .work = {1, 2, 3}}};
  const auto stall = [&] { return loader_stall(std::array{quick, slow, quick}); };
  EXPECT_DOUBLE_EQ(stall().share, 0.25);
  EXPECT_STREQ(stall().busy_with, "augment");
  slow.loader.work = {.disk = 2, .decode = 3, .augment = 1};
  EXPECT_STREQ(stall().busy_with, "decode");
  slow.loader.work = {.disk = 4, .decode = 3, .augment = 1};
  EXPECT_STREQ(stall().busy_with, "disk");
  EXPECT_EQ(loader_stall(std::array{RankSeconds{}}).share, 0);
}

}  // namespace
}  // namespace lockstep::trainers::step_window_test
