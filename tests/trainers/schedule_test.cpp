#include "engine/update/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"

namespace lockstep::trainers::schedule_test {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr double kNear = 1e-8;

// The learning rate at the first step of each epoch.
std::vector<double> by_epoch(const Schedule& schedule, int64_t epochs, int64_t steps_per_epoch) {
  std::vector<double> rates;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    rates.push_back(schedule.lr(epoch * steps_per_epoch));
  }
  return rates;
}

std::vector<double> by_step(const Schedule& schedule, int64_t steps) {
  return by_epoch(schedule, steps, 1);
}

MATCHER_P(NearRates, rates, "") {
  return ::testing::ExplainMatchResult(
      Pointwise(DoubleNear(kNear), std::vector<double>(rates)), arg, result_listener);
}

auto rates(std::initializer_list<double> values) {
  return NearRates(std::vector<double>(values));
}

TEST(Schedule, ConstStaysAsItIs) {
  const Schedule schedule({}, 0.1, 3, 2);
  EXPECT_EQ(schedule.lr(0), 0.1);
  EXPECT_EQ(schedule.lr(1'000'000), 0.1);
}

// main.py: StepLR(30, 0.1), each epoch.
TEST(Schedule, StepCutsEveryThirtyEpochs) {
  const Schedule schedule({.kind = ScheduleKind::kStep}, 0.1, 90, 10);
  EXPECT_NEAR(schedule.lr(299), 0.1, kNear);
  EXPECT_NEAR(schedule.lr(300), 0.01, kNear);
  EXPECT_NEAR(schedule.lr(599), 0.01, kNear);
  EXPECT_NEAR(schedule.lr(899), 0.001, kNear);
}

TEST(Schedule, MultiStepCutsAtItsMilestones) {
  const Schedule schedule(
      {.kind = ScheduleKind::kMultiStep, .milestones = {2, 5}, .gamma = 0.5}, 1, 7, 3);
  EXPECT_THAT(by_epoch(schedule, 7, 3), rates({1, 1, .5, .5, .5, .25, .25}));
  EXPECT_EQ(schedule.lr(5), 1);
}

// PyTorch's CosineAnnealingLR(T_max=5).
TEST(Schedule, CosineEndsAtZero) {
  for (const bool on_updates : {false, true}) {
    const Schedule schedule({.kind = ScheduleKind::kCosine, .on_updates = on_updates}, 0.1, 5, 4);
    EXPECT_THAT(by_epoch(schedule, 6, 4),
                rates({.1, .09045085, .06545085, .03454915, .00954915, 0}));
  }
}

TEST(Schedule, CosineMovesEachStepOrEachEpoch) {
  const ScheduleOptions config = {.kind = ScheduleKind::kCosine, .on_updates = true};
  EXPECT_THAT(by_step(Schedule(config, 0.1, 1, 5), 5),
              rates({.1, .09045085, .06545085, .03454915, .00954915}));
  const Schedule each_epoch({.kind = ScheduleKind::kCosine, .on_updates = false}, 0.1, 5, 4);
  EXPECT_EQ(each_epoch.lr(7), each_epoch.lr(4));
}

// Item 3.12: lr .4, 240 epochs.
TEST(Schedule, LinearFallsToZero) {
  const Schedule schedule({.kind = ScheduleKind::kLinear}, 0.4, 240, 7);
  EXPECT_NEAR(schedule.lr(60 * 7), 0.3, kNear);
  EXPECT_NEAR(schedule.lr(240 * 7 - 1), 0.4 / (240 * 7), kNear);
  const Schedule each_epoch({.kind = ScheduleKind::kLinear, .on_updates = false}, 0.4, 240, 7);
  EXPECT_NEAR(each_epoch.lr(61 * 7 - 1), 0.3, kNear);
}

// The rates that PyTorch prints for PolynomialLR(total_iters=5).
TEST(Schedule, PolyFallsToZeroByAPower) {
  const auto poly = [](double power) {
    return Schedule({.kind = ScheduleKind::kPoly, .power = power}, 0.1, 1, 5);
  };
  EXPECT_THAT(by_step(poly(1), 7), rates({.1, .08, .06, .04, .02, 0, 0}));
  EXPECT_THAT(by_step(poly(0.9), 7),
              rates({.1, .08180521461, .06314458675, .04383832906, .02349237886, 0, 0}));
  EXPECT_THAT(by_step(poly(2), 7), rates({.1, .064, .036, .016, .004, 0, 0}));
}

TEST(Schedule, PolyBeginsWhereWarmUpEnds) {
  const Schedule schedule(
      {.kind = ScheduleKind::kPoly, .on_updates = false, .power = 2, .warmup_epochs = 2}, 1, 4, 3);
  EXPECT_THAT(by_epoch(schedule, 5, 3), rates({.01, .505, 1, .25, 0}));
}

// The rates that PyTorch prints for OneCycleLR(max_lr=0.1).
TEST(Schedule, OneCycleRisesAndFalls) {
  const auto cycle = [](int64_t steps, const OneCycleOptions& config) {
    return by_step(Schedule({.kind = ScheduleKind::kOneCycle, .one_cycle = config}, 0.1, 1, steps),
                   steps);
  };
  EXPECT_THAT(cycle(6, {}), rates({.004, .09944154, .08117457, .04626371, .01334775, 4e-7}));
  EXPECT_THAT(cycle(8, {.pct_start = .5, .div = 10, .final_div = 100}),
              rates({.01, .0325, .0775, .1, .08536998372, .05005, .01473001628, 1e-4}));
  EXPECT_THAT(cycle(4, {.pct_start = 0}), rates({.08535539764, .0500002, .01464500236, 4e-7}));
  EXPECT_THAT(cycle(4, {.pct_start = 1}), rates({.004, .028, .076, .1}));
  EXPECT_THAT(cycle(1, {}), rates({4e-7}));
  EXPECT_THAT(cycle(4, {.pct_start = .25}), rates({.1, .0750001, .0250003, 4e-7}))
      << "where PyTorch divides by zero";
}

TEST(Schedule, OneCycleMovesEachEpochIfAsked) {
  const Schedule schedule({.kind = ScheduleKind::kOneCycle, .on_updates = false}, 0.1, 6, 4);
  EXPECT_THAT(by_epoch(schedule, 7, 4),
              rates({.004, .09944154, .08117457, .04626371, .01334775, 4e-7, 4e-7}));
  EXPECT_EQ(schedule.lr(7), schedule.lr(4));
}

// airbench94's schedule: 0.2 + 0.8 s / warm, then 1 - 0.93 (s - warm) / (total - warm).
TEST(Schedule, TriangularRisesAndFallsAlongLines) {
  const auto triangle = [](int64_t steps, const TriangularOptions& config) {
    return by_step(Schedule({.kind = ScheduleKind::kTriangular, .triangular = config}, 1, 1, steps),
                   steps);
  };
  EXPECT_THAT(triangle(10, {}),
              rates({.2, .6, 1, .88375, .7675, .65125, .535, .41875, .3025, .18625}));
  EXPECT_THAT(triangle(5, {.start = 1, .peak = 0, .end = 0}), rates({1, .8, .6, .4, .2}));
  EXPECT_THAT(triangle(4, {.start = 0, .peak = 1}), rates({0, .25, .5, .75}));
  EXPECT_THAT(triangle(3, {.peak = .3}), rates({1, .69, .38})) << "no step rises";
  const Schedule record({.kind = ScheduleKind::kTriangular}, 1.5, 9.9, 48);  // 476 steps
  EXPECT_NEAR(record.lr(0), .3, kNear);
  EXPECT_NEAR(record.lr(108), 1.5 * (.2 + .8 * 108 / 109), kNear);
  EXPECT_NEAR(record.lr(109), 1.5, kNear);
  EXPECT_NEAR(record.lr(475), 1.5 * (1 - .93 * 366 / 367), kNear);
  EXPECT_NEAR(record.lr(476), 1.5 * .07, kNear);
  const Schedule each_epoch(
      {.kind = ScheduleKind::kTriangular, .on_updates = false, .triangular = {.peak = .5}},
      1,
      4,
      3);
  EXPECT_THAT(by_epoch(each_epoch, 5, 3), rates({.2, .6, 1, .535, .07}));
}

// Item 0.11: e / W, beginning with 0.
TEST(Warmup, FromZeroByEpoch) {
  const Schedule schedule(
      {.on_updates = false, .warmup_epochs = 10, .warmup = {.decay = 0}}, 0.1, 20, 3);
  EXPECT_THAT(by_epoch(schedule, 13, 3),
              rates({0, .01, .02, .03, .04, .05, .06, .07, .08, .09, .1, .1, .1}));
  EXPECT_EQ(schedule.lr(2), 0);
}

// Item 0.12, and DeepLearningExamples' (e + 1) / W.
TEST(Warmup, FromOneByEpoch) {
  const Schedule schedule(
      {.on_updates = false, .warmup_epochs = 4, .warmup = {.method = WarmupMethod::kFromOne}},
      0.1,
      9,
      3);
  EXPECT_THAT(by_epoch(schedule, 6, 3), rates({.025, .05, .075, .1, .1, .1}));
}

TEST(Warmup, OnUpdatesItRisesEachStep) {
  const ScheduleOptions linear = {.warmup_epochs = 2, .warmup = {.decay = 0.2}};
  EXPECT_THAT(by_step(Schedule(linear, 1, 9, 2), 6), rates({.2, .4, .6, .8, 1, 1}));
  const ScheduleOptions from_one = {.warmup_epochs = 2,
                                    .warmup = {.method = WarmupMethod::kFromOne}};
  EXPECT_THAT(by_step(Schedule(from_one, 1, 9, 2), 6), rates({.25, .5, .75, 1, 1, 1}));
}

// torchvision: SequentialLR of LinearLR(.01, 3) and CosineAnnealingLR(5).
TEST(Warmup, LinearThenCosineIsTorchvisions) {
  const Schedule schedule(
      {.kind = ScheduleKind::kCosine, .on_updates = false, .warmup_epochs = 3}, 0.1, 8, 2);
  EXPECT_THAT(by_epoch(schedule, 9, 2),
              rates({.001, .034, .067, .1, .09045085, .06545085, .03454915, .00954915, 0}));
}

// torchvision: SequentialLR of LinearLR(.01, 2) and StepLR(3) or MultiStepLR([3]); Apex and
// DeepLearningExamples count from the run's first epoch.
TEST(Warmup, CutsCountFromItsEndUnlessToldOtherwise) {
  for (const ScheduleKind kind : {ScheduleKind::kStep, ScheduleKind::kMultiStep}) {
    ScheduleOptions config{.kind = kind,
                           .on_updates = false,
                           .step_epochs = 3,
                           .milestones = {3, 6},
                           .warmup_epochs = 2};
    EXPECT_THAT(by_epoch(Schedule(config, 0.1, 9, 2), 9, 2),
                rates({.001, .0505, .1, .1, .1, .01, .01, .01, .001}));
    config.warmup.is_prefix = false;
    EXPECT_THAT(by_epoch(Schedule(config, 0.1, 9, 2), 9, 2),
                rates({.001, .0505, .1, .01, .01, .01, .001, .001, .001}));
    config.warmup_epochs = 4;
    config.warmup = {.decay = 1};
    EXPECT_THAT(by_epoch(Schedule(config, 0.1, 9, 2), 9, 2),
                rates({.1, .1, .1, .1, .1, .1, .1, .01, .01}))
        << "no cut within the warm-up";
  }
}

// Item 1.9: the values of the tutorial's adjust_learning_rate, which counts steps from 1.
TEST(Warmup, ApexOvershootsALittle) {
  constexpr int64_t kSteps = 770;
  const Schedule schedule({.kind = ScheduleKind::kMultiStep,
                           .milestones = {30, 60, 80},
                           .warmup_epochs = 5,
                           .warmup = {.method = WarmupMethod::kApex, .is_prefix = false}},
                          0.65,
                          90,
                          kSteps);
  const auto lr = [&](int64_t epoch, int64_t step) {
    return schedule.lr(epoch * kSteps + step - 1);
  };
  EXPECT_NEAR(lr(0, 1), .0003376623, 1e-10);
  EXPECT_NEAR(lr(0, 770), .1301688, 1e-7);
  EXPECT_NEAR(lr(4, 770), .6501688, 1e-7);
  EXPECT_NEAR(lr(5, 1), .65, kNear);
  EXPECT_NEAR(lr(29, 770), .65, kNear);
  EXPECT_NEAR(lr(30, 1), .065, kNear);
  EXPECT_NEAR(lr(60, 1), .0065, kNear);
  EXPECT_NEAR(lr(79, 770), .0065, kNear);
  EXPECT_NEAR(lr(80, 1), .00065, kNear);
}

TEST(Warmup, OfAllEpochsLeavesNothingToDecay) {
  const Schedule schedule(
      {.kind = ScheduleKind::kCosine, .warmup_epochs = 3, .warmup = {.decay = 0}}, 1, 3, 1);
  EXPECT_THAT(by_step(schedule, 4), rates({0, 1. / 3, 2. / 3, 1}));
}

// The rate of each epoch if these metrics follow it.
std::vector<double> fed(Schedule& schedule, std::initializer_list<double> metrics) {
  std::vector<double> rates;
  int64_t epoch = 0;
  for (const double metric : metrics) {
    rates.push_back(schedule.lr(epoch));
    schedule.end_epoch(epoch++, metric, metric);
  }
  return rates;
}

Schedule plateau(const PlateauOptions& config, double base_lr, int64_t warmup_epochs = 0) {
  return Schedule({.kind = ScheduleKind::kPlateau,
                   .on_updates = false,
                   .warmup_epochs = warmup_epochs,
                   .warmup = {.decay = 0},
                   .plateau = config},
                  base_lr,
                  100,
                  1);
}

// As printed by PyTorch: .9999 is no improvement over 1, but .99985 is.
TEST(PlateauSchedule, CutsWhenMoreThanPatienceEpochsAreNoBetter) {
  Schedule schedule = plateau({.patience = 2}, 1);
  EXPECT_THAT(fed(schedule, {1, .9999, .99985, 1, 1, 1, 1, 1, .5, .5, .5, .5, .5}),
              rates({1, 1, 1, 1, 1, 1, .1, .1, .1, .1, .1, .1, .01}));
}

TEST(PlateauSchedule, AccuracyMustGrow) {
  Schedule schedule = plateau({.patience = 2, .on_accuracy = true, .upwards = true}, .1);
  EXPECT_THAT(fed(schedule, {50, 50.004, 50.006, 50.006, 50.006, 50.006, 60, 60, 60, 60}),
              rates({.1, .1, .1, .1, .1, .1, .01, .01, .01, .01}));
}

// Item 0.14: the text of tutorial 000 passes the accuracy to a scheduler of mode "min".
TEST(PlateauSchedule, InModeMinAGrowingAccuracyCuts) {
  Schedule schedule = plateau({.patience = 2, .on_accuracy = true}, .1);
  EXPECT_THAT(fed(schedule, {50, 60, 70, 80, 90, 40, 40}), rates({.1, .1, .1, .1, .01, .01, .01}));
  Schedule of_loss = plateau({.patience = 0, .upwards = true}, .1);
  EXPECT_THAT(fed(of_loss, {1, .5, .5}), rates({.1, .1, .01}));
}

TEST(PlateauSchedule, SaysTheRateAfterACut) {
  Schedule schedule = plateau({.patience = 0}, .1);
  EXPECT_EQ(schedule.end_epoch(0, 1, 0), std::nullopt);
  const std::optional<double> rate = schedule.end_epoch(1, 1, 0);
  ASSERT_TRUE(rate);
  EXPECT_NEAR(*rate, .01, kNear);
  EXPECT_EQ(*rate, schedule.lr(2));
}

// Item 0.11: e / W from 0. Item 0.13: upstream steps its cosine only up to epoch W, so the rate
// stays at its second value; its author's log has .09999897.
TEST(Warmup, FrozenCosineStaysAtTheSecondValue) {
  const WarmupOptions frozen = {.method = WarmupMethod::kFrozenCosine, .decay = 0};
  const Schedule schedule(
      {.kind = ScheduleKind::kPlateau, .on_updates = false, .warmup_epochs = 10, .warmup = frozen},
      .1,
      500,
      30);
  constexpr double kFrozen = .0999989725;
  EXPECT_THAT(
      by_epoch(schedule, 14, 30),
      rates({0, .01, .02, .03, .04, .05, .06, .07, .08, .09, .1, kFrozen, kFrozen, kFrozen}));
  EXPECT_NEAR(schedule.lr(499 * 30), kFrozen, 1e-9);
  Schedule cut({.kind = ScheduleKind::kPlateau,
                .on_updates = false,
                .warmup_epochs = 1,
                .warmup = frozen,
                .plateau = {.patience = 0}},
               1,
               3,
               1);
  EXPECT_THAT(fed(cut, {1, 1, 1, 1}), rates({0, 1, .05, .005}));
}

// As printed by PyTorch: LambdaLR(e / 4), updated after epochs 0 to 4, then ReduceLROnPlateau.
TEST(PlateauSchedule, WarmupUndoesItsCuts) {
  Schedule schedule = plateau({.patience = 1}, .1, 4);
  EXPECT_THAT(fed(schedule, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
              rates({0, .025, .05, .0075, .1, .01, .01, .001, .001, .0001, .0001, .00001}));
  Schedule last_moment = plateau({.patience = 1}, .1, 4);
  EXPECT_THAT(fed(last_moment, {1, .5, 1, 1, 1, 1, 1, 1}),
              rates({0, .025, .05, .075, .01, .1, .01, .01}));
}

TEST(PlateauSchedule, CutsTooSmallToMatterAreNotMade) {
  Schedule schedule = plateau({.patience = 0}, 1e-7);
  const std::vector<double> got = fed(schedule, {1, 1, 1, 1});
  EXPECT_NEAR(got[2], 1e-8, 1e-15);
  EXPECT_EQ(got[3], got[2]);
}

TEST(PlateauSchedule, NanIsNoImprovement) {
  Schedule schedule = plateau({.patience = 0}, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(fed(schedule, {1, nan, .5, .5}), rates({1, 1, .1, .1}));
}

TEST(PlateauSchedule, ContinuesFromItsState) {
  const std::vector<double> losses = {1, 1.0 / 3, .4, .4, .4, 1.0 / 3, .2, .3, .3, .3};
  Schedule whole = plateau({.patience = 1}, .3);
  for (size_t stop = 0; stop < losses.size(); ++stop) {
    Schedule resumed = plateau({.patience = 1}, .3);
    resumed.restore(whole.state());
    EXPECT_EQ(resumed.state(), whole.state());
    Schedule rest = plateau({.patience = 1}, .3);
    rest.restore(whole.state());
    Schedule uninterrupted = whole;
    for (size_t i = stop; i < losses.size(); ++i) {
      const auto epoch = static_cast<int64_t>(i);
      rest.end_epoch(epoch, losses[i], 0);
      uninterrupted.end_epoch(epoch, losses[i], 0);
      EXPECT_EQ(rest.lr(epoch + 1), uninterrupted.lr(epoch + 1)) << "stopped at " << stop;
    }
    whole.end_epoch(static_cast<int64_t>(stop), losses[stop], 0);
  }
}

TEST(Schedule, OthersHaveNoState) {
  Schedule schedule({.kind = ScheduleKind::kStep}, 1, 90, 1);
  schedule.end_epoch(0, 1, 1);
  EXPECT_FALSE(schedule.watches_validation());
  EXPECT_EQ(schedule.state(), std::nullopt);
  schedule.restore(ScheduleState{.factor = 0.5});
  EXPECT_EQ(schedule.lr(0), 1);
}

TEST(Schedule, APlateauBeginsAfreshAfterAnotherSchedule) {
  Schedule schedule = plateau({.patience = 0}, 1);
  schedule.restore(std::nullopt);
  EXPECT_EQ(schedule.end_epoch(0, 3, 0), std::nullopt);
  EXPECT_TRUE(schedule.end_epoch(1, 3, 0).has_value());
}

TEST(Schedule, AnotherMetricKeepsTheRateAlone) {
  Schedule of_accuracy = plateau({.patience = 0, .on_accuracy = true, .upwards = true}, 1);
  of_accuracy.end_epoch(0, 3, 90);
  EXPECT_TRUE(of_accuracy.end_epoch(1, 3, 80).has_value());
  Schedule of_loss = plateau({.patience = 0}, 1);
  of_loss.restore(of_accuracy.state());
  EXPECT_DOUBLE_EQ(of_loss.lr(2), 0.1);
  EXPECT_EQ(of_loss.end_epoch(2, 3, 80), std::nullopt) << "the first loss is the best so far";
}

}  // namespace
}  // namespace lockstep::trainers::schedule_test
