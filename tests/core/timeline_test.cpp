#include "core/timeline.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace lockstep::timeline_test {
namespace {

using namespace std::chrono_literals;
using Clock = Timeline::Clock;

Clock::time_point at(int microseconds) {
  return Clock::time_point(std::chrono::microseconds(microseconds));
}

TEST(Timeline, KeepsSpansOnlyWhileItIsOn) {
  Timeline timeline(4);
  timeline.record({.name = "before", .begin = at(0), .end = at(1)});
  timeline.start();
  timeline.record({.name = "during", .begin = at(1), .end = at(2)});
  timeline.stop();
  timeline.record({.name = "after", .begin = at(2), .end = at(3)});
  ASSERT_EQ(timeline.spans().size(), 1U);
  EXPECT_EQ(timeline.spans().front().name, "during");
}

TEST(Timeline, OrdersByBeginAndTheLongerFirst) {
  Timeline timeline(4);
  timeline.start();
  timeline.record({.name = "inner", .begin = at(5), .end = at(6)});
  timeline.record({.name = "first", .begin = at(1), .end = at(2)});
  timeline.record({.name = "outer", .begin = at(5), .end = at(9)});
  std::string order;
  for (const Timeline::Span& span : timeline.spans()) order += std::string(span.name) + " ";
  EXPECT_EQ(order, "first outer inner ");
}

TEST(Timeline, LosesWhatFindsNoRoomAndSaysSinceWhen) {
  Timeline timeline(2);
  timeline.start();
  for (const int begin : {1, 2}) timeline.record({.begin = at(begin), .end = at(9)});
  EXPECT_FALSE(timeline.first_lost());
  for (const int begin : {7, 4, 8}) timeline.record({.begin = at(begin), .end = at(9)});
  EXPECT_EQ(timeline.spans().size(), 2U);
  EXPECT_EQ(timeline.first_lost(), at(4));
}

TEST(Timeline, ThreadsRecordWithoutLosingASpan) {
  constexpr int kThreads = 4;
  constexpr int kSpans = 1000;
  Timeline timeline(kThreads * kSpans);
  timeline.start();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&timeline, thread] {
      const TimelineLane lane{TimelineLane::Kind::kLoader, thread};
      for (int i = 0; i < kSpans; ++i) const TimelineSpan span(&timeline, "work", i, lane);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> next(kThreads, 0);
  for (const Timeline::Span& span : timeline.spans()) {
    EXPECT_EQ(span.number, next[static_cast<size_t>(span.lane.index)]++);
    EXPECT_LE(span.begin, span.end);
  }
  EXPECT_EQ(next, std::vector<int64_t>(kThreads, kSpans));
}

TEST(TimelineSpan, NeedsNoTimeline) {
  const TimelineSpan none(nullptr, "none");
  Timeline timeline(1);
  {
    const TimelineSpan off(&timeline, "off");
  }
  EXPECT_TRUE(timeline.spans().empty());
}

}  // namespace
}  // namespace lockstep::timeline_test
