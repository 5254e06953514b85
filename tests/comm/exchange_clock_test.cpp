#include "comm/exchange_clock.h"

#include <thread>

#include <gtest/gtest.h>

namespace lockstep::comm::exchange_clock_test {
namespace {

using std::chrono::milliseconds;

BucketTimes under_way(int start_ms, int end_ms) {
  const BucketTimes::Clock::time_point origin(std::chrono::hours(1));
  return {.ready = origin,
          .start = origin + milliseconds(start_ms),
          .end = origin + milliseconds(end_ms)};
}

TEST(ExchangeClock, TimeUnderWayCountsOnce) {
  EXPECT_DOUBLE_EQ(seconds_under_way({}), 0);
  const std::vector<BucketTimes> apart = {under_way(0, 10), under_way(20, 25)};
  EXPECT_DOUBLE_EQ(seconds_under_way(apart), 0.015);
  const std::vector<BucketTimes> beside = {under_way(0, 10), under_way(4, 16)};
  EXPECT_DOUBLE_EQ(seconds_under_way(beside), 0.016);
  const std::vector<BucketTimes> inside = {under_way(0, 10), under_way(2, 5), under_way(8, 12)};
  EXPECT_DOUBLE_EQ(seconds_under_way(inside), 0.012);
}

TEST(ExchangeClock, WhatIsNotExposedIsHidden) {
  ExchangeClock clock(1);
  clock.start(0);
  {
    const ExchangeClock::Exposed exposed(clock);
    std::this_thread::sleep_for(milliseconds(4));
  }
  std::this_thread::sleep_for(milliseconds(8));
  clock.end(0);
  const ExchangeTimes times = clock.take();
  EXPECT_GE(times.exposed_s, 0.004);
  EXPECT_GE(times.hidden_s, 0.008);
  const double whole = seconds_under_way(times.buckets);
  EXPECT_NEAR(times.exposed_s + times.hidden_s, whole, 1e-9);
}

TEST(ExchangeClock, AStepStartsFromZero) {
  ExchangeClock clock(1);
  clock.start(0);
  clock.end(0);
  {
    const ExchangeClock::Exposed exposed(clock);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_GE(clock.take().exposed_s, 0.001);
  const ExchangeTimes next = clock.take();
  EXPECT_EQ(next.exposed_s, 0);
  EXPECT_EQ(next.hidden_s, 0);
}

}  // namespace
}  // namespace lockstep::comm::exchange_clock_test
