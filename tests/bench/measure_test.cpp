#include "bench/allreduce/measure.h"

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "tests/bench/spoiled_communicator.h"

namespace lockstep::bench::measure_test {
namespace {

BenchOptions small_options() {
  BenchOptions options;
  options.sizes = {.min_bytes = 4, .max_bytes = 4096, .step_factor = 2};
  options.iterations = 3;
  return options;
}

TEST(Meter, ThreadRanksSumRightInEverySize) {
  for (const int ranks : {1, 2, 3}) {
    comm::spawn_ranks(ranks, [&](Communicator& peers) {
      Meter meter(peers, small_options());
      for (const int64_t bytes : {0, 3, 4, 12, 4096}) {
        const Measurement result = meter.measure(Algorithm::kTree, bytes);
        EXPECT_EQ(result.count, bytes / 4);
        EXPECT_EQ(result.out_of_place.wrong, 0);
        EXPECT_EQ(result.in_place.wrong, 0);
        EXPECT_EQ(std::ssize(result.in_place.seconds), 3);
        EXPECT_GT(result.out_of_place.mean(), 0);
      }
    });
  }
}

TEST(Meter, WrongElementsAreCounted) {
  comm::SingleCommunicator alone;
  SpoiledCommunicator peers(alone);
  BenchOptions options = small_options();
  options.checks = 3;
  Meter meter(peers, options);
  peers.last_wrong = true;
  const Measurement tree = meter.measure(Algorithm::kTree, 64);
  EXPECT_EQ(tree.out_of_place.wrong, 6) << "one element, two patterns, three checks";
  EXPECT_EQ(tree.in_place.wrong, 6);
  EXPECT_EQ(meter.measure(Algorithm::kRing, 64).in_place.wrong, 3) << "no order to check";
  EXPECT_EQ(totals_of({tree}, 2).failed, 2);
}

TEST(Meter, WhatOneRankSeesWrongAllRanksReport) {
  comm::spawn_ranks(3, [&](Communicator& ranks) {
    SpoiledCommunicator peers(ranks);
    peers.last_wrong = ranks.rank() == 1;
    EXPECT_EQ(Meter(peers, small_options()).measure(Algorithm::kTree, 64).in_place.wrong, 2);
  });
}

TEST(Meter, TheSumsOfAnEarlierCheckAreWrong) {
  comm::SingleCommunicator alone;
  SpoiledCommunicator peers(alone);
  peers.stale = true;
  BenchOptions options = small_options();
  options.checks = 3;
  EXPECT_GT(Meter(peers, options).measure(Algorithm::kRing, 4096).in_place.wrong, 3 * 1024 - 10);
}

TEST(Meter, WithoutChecksNothingIsSaidAboutTheSums) {
  comm::SingleCommunicator alone;
  SpoiledCommunicator peers(alone);
  peers.last_wrong = true;
  BenchOptions options = small_options();
  options.checks = 0;
  const Measurement result = Meter(peers, options).measure(Algorithm::kTree, 64);
  EXPECT_EQ(result.in_place.wrong, Side::kUnchecked);
  EXPECT_EQ(totals_of({result}, 2).failed, 0);
}

TEST(Meter, RunsWarmUpsIterationsAndChecks) {
  comm::SingleCommunicator alone;
  SpoiledCommunicator peers(alone);
  BenchOptions options = small_options();
  options.warmup_iterations = 5;
  options.iterations = 7;
  options.checks = 2;
  Meter(peers, options).measure(Algorithm::kTree, 64);
  EXPECT_EQ(peers.all_reduces, 2 * (5 + 7 + 2 * 2));
}

TEST(Meter, BarriersStandWhereBlockingSays) {
  for (const auto& [blocking, barriers] : {std::pair{Blocking::kNone, 2},
                                           {Blocking::kWait, 2},
                                           {Blocking::kTimedBarrier, 2 + 2 * 3},
                                           {Blocking::kUntimedBarrier, 2 + 2 * 2 * 3}}) {
    comm::SingleCommunicator alone;
    SpoiledCommunicator peers(alone);
    BenchOptions options = small_options();
    options.blocking = blocking;
    Meter(peers, options).measure(Algorithm::kTree, 64);
    EXPECT_EQ(peers.barriers, barriers) << static_cast<int>(blocking);
  }
}

TEST(Meter, OnlyInPlaceSumsPileUpAndOnlyWithoutABarrier) {
  using Sums = std::vector<float>;
  for (const auto& [blocking, sums] : {std::pair{Blocking::kNone, Sums{2, 2, 2, 2, 2, 4, 8, 16}},
                                       {Blocking::kUntimedBarrier, Sums{2, 2, 2, 2, 2, 2, 2, 2}}}) {
    comm::spawn_ranks(2, [&](Communicator& ranks) {
      SpoiledCommunicator peers(ranks);
      BenchOptions options = small_options();
      options.checks = 0;
      options.blocking = blocking;
      Meter(peers, options).measure(Algorithm::kTree, 64);
      EXPECT_EQ(peers.firsts, sums);
    });
  }
}

TEST(OverRanks, OneTimeAnIteration) {
  const std::vector<double> by_rank = {1, 20, 4, 10, 1, 10};  // two iterations of three ranks
  using Times = std::vector<double>;
  EXPECT_EQ(over_ranks(by_rank, 2, RankTime::kRank0), (Times{1, 20}));
  EXPECT_EQ(over_ranks(by_rank, 2, RankTime::kMean), (Times{2, 40.0 / 3}));
  EXPECT_EQ(over_ranks(by_rank, 2, RankTime::kFastest), (Times{1, 10}));
  EXPECT_EQ(over_ranks(by_rank, 2, RankTime::kSlowest), (Times{4, 20}));
}

TEST(Totals, MeanBusBandwidthOfBothSides) {
  Measurement result{.count = 250'000'000};
  result.out_of_place.seconds = {0.5, 1.5};
  result.in_place.seconds = {0.5};
  const Totals totals = totals_of({result}, 4);
  EXPECT_DOUBLE_EQ(totals.bus_bandwidth, (1.5 + 3) / 2);
  EXPECT_EQ(totals_of({}, 4).bus_bandwidth, 0);
}

}  // namespace
}  // namespace lockstep::bench::measure_test
