#include "engine/step/exchange_log.h"

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"

namespace lockstep::trainers::exchange_log_test {
namespace {

using Clock = comm::BucketTimes::Clock;
using std::chrono::milliseconds;

void add_step(ExchangeLog& log, double own_s, int64_t moved, int ready_ms) {
  const Clock::time_point begin(milliseconds(5000));
  const comm::ExchangeTimes times{.buckets = {{.ready = begin + milliseconds(ready_ms),
                                               .start = begin + milliseconds(ready_ms + 10),
                                               .end = begin + milliseconds(ready_ms + 30)}}};
  log.add({.begin = begin,
           .seconds = {.own = own_s, .exposed = 0.5, .hidden = 0.25},
           .exchange = times,
           .traffic = {.moved_bytes = moved, .reduced_bytes = 8},
           .images = 7});
}

TEST(ExchangeLog, AveragesTheStepsAfterTheFirst) {
  comm::SingleCommunicator alone;
  ExchangeLog log;
  add_step(log, 100, 100, 1000);
  ExchangeSummary summary = log.summarize(alone);
  EXPECT_EQ(summary.ranks.at(0).seconds.own, 100);
  EXPECT_DOUBLE_EQ(summary.buckets.at(0).ready, 1);

  add_step(log, 1, 10, 100);
  add_step(log, 3, 30, 300);
  summary = log.summarize(alone);
  EXPECT_EQ(summary.ranks.at(0).seconds.own, 2);
  EXPECT_EQ(summary.ranks.at(0).seconds.exposed, 0.5);
  EXPECT_EQ(summary.ranks.at(0).seconds.hidden, 0.25);
  EXPECT_EQ(summary.ranks.at(0).moved_bytes, 20);
  EXPECT_EQ(summary.ranks.at(0).reduced_bytes, 8);
  EXPECT_EQ(summary.ranks.at(0).images, 21);
  ASSERT_EQ(summary.buckets.size(), 1U);
  EXPECT_DOUBLE_EQ(summary.buckets[0].ready, 0.2);
  EXPECT_DOUBLE_EQ(summary.buckets[0].start, 0.21);
  EXPECT_DOUBLE_EQ(summary.buckets[0].end, 0.23);
}

TEST(ExchangeLog, EveryRankLearnsOfAll) {
  comm::spawn_ranks(3, [](Communicator& peers) {
    ExchangeLog log;
    add_step(log, 1.0 + peers.rank(), 10 * peers.rank(), 1);
    const ExchangeSummary summary = log.summarize(peers);
    ASSERT_EQ(summary.ranks.size(), 3U);
    EXPECT_EQ(summary.ranks[2].seconds.own, 3);
    EXPECT_EQ(summary.ranks[2].moved_bytes, 20);
    EXPECT_EQ(summary.mean_seconds().own, 2);
    EXPECT_EQ(summary.mean_seconds().exposed, 0.5);
  });
}

TEST(ExchangeLog, NoStepIsNoFigure) {
  comm::SingleCommunicator alone;
  const ExchangeSummary summary = ExchangeLog().summarize(alone);
  EXPECT_EQ(summary.ranks.at(0).images, 0);
  EXPECT_EQ(summary.mean_seconds().own, 0);
  EXPECT_TRUE(summary.buckets.empty());
}

}  // namespace
}  // namespace lockstep::trainers::exchange_log_test
