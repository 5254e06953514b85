#include "engine/observe/step_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "core/mt19937.h"
#include "nn/layers.h"

namespace lockstep::step_timeline_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int64_t> numbers_of(const RecordedSteps& steps) {
  std::vector<int64_t> numbers;
  for (const Timeline::Span& span : steps.spans) {
    if (span.name == kStepSpan) numbers.push_back(span.number);
  }
  return numbers;
}

std::optional<RecordedSteps> take_step(StepTimeline& timeline, int64_t step) {
  timeline.begin_step(step);
  {
    const TimelineSpan span(timeline.timeline(), kStepSpan, step);
    timeline.in_phase(kForwardSpan, [] {});
  }
  return timeline.end_step(step);
}

TEST(StepTimeline, ReturnsTheWantedStepsOnceOnAllRanks) {
  comm::spawn_ranks(2, [](Communicator& ranks) {
    Mt19937 rng(1);
    const nn::Linear model(nn::Init{rng}, 2, 2);
    Stream stream;
    StepTimeline timeline(TracedSteps{.first = 2, .last = 3}, ranks, stream, model);
    EXPECT_FALSE(take_step(timeline, 1));
    EXPECT_FALSE(take_step(timeline, 2));
    const auto steps = take_step(timeline, 3);
    ASSERT_TRUE(steps);
    EXPECT_THAT(numbers_of(*steps), ElementsAre(2, 3));
    EXPECT_EQ(steps->last, 3);
    EXPECT_FALSE(steps->has_more);
    EXPECT_THAT(steps->clocks_before, SizeIs(2));
    EXPECT_THAT(steps->clocks_after, SizeIs(2));
    EXPECT_FALSE(take_step(timeline, 4));
    EXPECT_FALSE(timeline.end());
  });
}

TEST(StepTimeline, ATrainingThatEndsEarlyReturnsWhatItTook) {
  comm::SingleCommunicator alone;
  Mt19937 rng(1);
  const nn::Linear model(nn::Init{rng}, 2, 2);
  Stream stream;
  StepTimeline short_one(TracedSteps{.first = 1, .last = 9}, alone, stream, model);
  take_step(short_one, 1);
  EXPECT_THAT(numbers_of(short_one.end().value()), ElementsAre(1));
  StepTimeline none(TracedSteps{.first = 5, .last = 9}, alone, stream, model);
  take_step(none, 1);
  EXPECT_THAT(none.end().value().clocks_before, IsEmpty());
  StepTimeline unwanted(std::nullopt, alone, stream, model);
  EXPECT_EQ(unwanted.timeline(), nullptr);
  EXPECT_FALSE(unwanted.end());
}

TEST(StepTimeline, StepsForWhichThereIsNoRoomAreLeftOut) {
  comm::SingleCommunicator alone;
  Mt19937 rng(1);
  const nn::Linear model(nn::Init{rng}, 2, 2);
  Stream stream;
  StepTimeline timeline(TracedSteps{.first = 1, .last = 3}, alone, stream, model);
  take_step(timeline, 1);
  timeline.begin_step(2);
  for (size_t i = 0; i < StepTimeline::kMaxSpans; ++i) timeline.in_phase(kForwardSpan, [] {});
  timeline.end_step(2);
  const auto steps = take_step(timeline, 3);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->last, 1);
  EXPECT_TRUE(steps->has_more);
  EXPECT_THAT(numbers_of(*steps), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::step_timeline_test
