#include <gtest/gtest.h>

#include "engine/step/step_figures.h"

namespace lockstep::trainers::epoch_progress_test {
namespace {

// Like AverageMeter in main.py, averages are weighted by the number of images.
TEST(EpochProgress, AShortLastStepCountsByItsImages) {
  EpochProgress epoch(0, 3, 64);
  for (int step = 0; step < 3; ++step) epoch.end_step(0, 0);
  const WindowTotals totals{.losses = {1, 2, 5}, .correct1 = 36, .images = 144, .ranks = {{}}};
  const StepMetrics metrics = epoch.update(totals, 0, 0);
  const double want = (64 * 1 + 64 * 2 + 16 * 5) / 144.0;
  EXPECT_DOUBLE_EQ(epoch.loss(), want);
  EXPECT_DOUBLE_EQ(metrics.loss_avg, want);
  EXPECT_EQ(epoch.acc1(), 25);
}

TEST(EpochProgress, GoesOnFromAnEarlierProcess) {
  EpochProgress epoch(0, 2, 4, {.steps = 1, .images = 4, .loss = 3, .correct1 = 1});
  epoch.end_step(0, 0);
  epoch.update({.losses = {1}, .correct1 = 2, .images = 4, .ranks = {{}}}, 0, 0);
  EXPECT_EQ(epoch.loss(), 2);
  EXPECT_EQ(epoch.acc1(), 37.5);
  EXPECT_EQ(epoch.images(), 4);
}

// Ranks may exchange their figures more often than a line is printed.
TEST(EpochProgress, ALineHasTheFiguresOfAllStepsSinceTheLast) {
  EpochProgress epoch(0, 4, 4);
  const auto update = [&](int64_t correct, double own) {
    epoch.end_step(0, 0);
    return epoch.update(
        {.losses = {1}, .correct1 = correct, .images = 4, .ranks = {{.own = own}, {.own = 1}}},
        0,
        0);
  };
  update(4, 2);
  const StepMetrics first = update(1, 4);
  EXPECT_EQ(first.acc1, 62.5);
  EXPECT_EQ(first.skew, 2);  // 6 s and 2 s
  epoch.begin_line();
  const StepMetrics second = update(1, 1);
  EXPECT_EQ(second.acc1, 25);
  EXPECT_EQ(second.skew, 0);
  EXPECT_EQ(second.acc1_avg, 50);
}

// A resumed run may begin with an evaluation.
TEST(EpochProgress, AveragesOfAnEarlierProcessHaveNoTimes) {
  const EpochProgress epoch(0, 1, 4, {.steps = 1, .images = 4, .loss = 3, .correct1 = 1});
  const StepMetrics averages = epoch.averages(0.5);
  EXPECT_EQ(averages.loss_avg, 3);
  EXPECT_EQ(averages.acc1_avg, 25);
  EXPECT_EQ(averages.lr, 0.5);
  EXPECT_EQ(averages.step_s_avg, 0);
  EXPECT_EQ(averages.images_per_s_avg, 0);
}

}  // namespace
}  // namespace lockstep::trainers::epoch_progress_test
