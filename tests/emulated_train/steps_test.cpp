// Steps on the fake device: at each precision level what the CPU computes, and without waiting.
#include <utility>

#include <gtest/gtest.h>

#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::testing::steps_test {
namespace {

using emulation::reset_runtime;
using emulation::runtime_counters;
using emulation::RuntimeCounters;
using emulation::set_stream_order;
using emulation::StreamOrder;
using trainers::ResolvedRun;

struct Level {
  const char* name;
  OptLevel level = OptLevel::kO0;
  Dtype dtype = Dtype::kF16;
  double tolerance = 0;
  bool scales = false;
};
void PrintTo(const Level& level, std::ostream* out) {
  *out << level.name;
}

constexpr Level kLevels[] = {{"O0", OptLevel::kO0, Dtype::kF16, 1e-4},
                             {"O1f16", OptLevel::kO1, Dtype::kF16, 0.02, true},
                             {"O2f16", OptLevel::kO2, Dtype::kF16, 0.02, true},
                             {"O2bf16", OptLevel::kO2, Dtype::kBF16, 0.05},
                             {"O3f16", OptLevel::kO3, Dtype::kF16, 0.02}};

ResolvedRun run_of(const Level& level, Device device, int64_t steps) {
  ResolvedRun run = tiny_run(device, steps);
  run.request.precision.level = level.level;
  run.request.precision.dtype = level.dtype;
  run.request.precision.master_weights = level.level != OptLevel::kO3;
  run.request.precision.keep_batchnorm_fp32 = run.request.precision.master_weights;
  if (level.scales) run.request.precision.loss_scaling = LossScaling{.initial = 1024};
  run.request.optimizer.groups.rules = {{.pattern = "*.bias", .lr = 2, .weight_decay = 0.5}};
  return run;
}

void add_all_that_acts_on_the_device(ResolvedRun& run) {
  run.request.optimizer.larc = nn::LarcParams{};
  run.request.optimizer.ema = 0.9;
  run.request.optimizer.lookahead = {
      .k = 3, .alpha = 0.25, .variant = nn::LookaheadVariant::kAirbench};
  run.request.optimizer.groups.rules.push_back({.pattern = "*conv1.weight", .epochs = 1});
  run.request.augmentation = {.flip = Flip::kAlternating, .erase = 0.5, .mixup = 0.4, .cutmix = 1};
}

class EmulatedSteps : public ::testing::TestWithParam<Level> {
 protected:
  EmulatedSteps() { reset_runtime(); }
};

class EmulatedCalls : public EmulatedSteps {};

TEST_P(EmulatedSteps, LearnWhatTheCpuLearns) {
  set_stream_order(StreamOrder::kLazy);
  const TinyResult want = train_tiny(run_of(GetParam(), Device::kCpu, 3));
  const TinyResult got = train_tiny(run_of(GetParam(), Device::kCuda, 3));
  EXPECT_LT(distance(want.weights, got.weights), GetParam().tolerance);
  EXPECT_NEAR(got.training.final->loss, want.training.final->loss, 10 * GetParam().tolerance);
}

// Of a step that does not print, when memory has been used before.
RuntimeCounters calls_of_a_step(ResolvedRun run) {
  const auto calls = [&](int64_t steps) {
    reset_runtime();
    run.request.max_steps = steps;
    train_tiny(run);
    return runtime_counters;
  };
  calls(3);
  const RuntimeCounters few = calls(6), more = calls(7);
  RuntimeCounters step;
  step.launches = more.launches - few.launches;
  step.graph_launches = more.graph_launches - few.graph_launches;
  step.synchronizations = more.synchronizations - few.synchronizations;
  step.allocations = more.allocations - few.allocations;
  step.pinned_allocations = more.pinned_allocations - few.pinned_allocations;
  return step;
}

void expect_no_waiting(const RuntimeCounters& calls) {
  EXPECT_EQ(calls.synchronizations, 0);
  EXPECT_EQ(calls.allocations, 0);
  EXPECT_EQ(calls.pinned_allocations, 0);
}

TEST_P(EmulatedCalls, NoneWaitsAndNoneAllocates) {
  set_stream_order(StreamOrder::kEager);  // a device that is never behind
  ResolvedRun run = run_of(GetParam(), Device::kCuda, 0);
  run.request.optimizer.clip_grad_norm = 1;
  add_all_that_acts_on_the_device(run);
  run.request.graph = false;
  const RuntimeCounters eager = calls_of_a_step(run);
  expect_no_waiting(eager);
  EXPECT_EQ(eager.graph_launches, 0);
  RecordProperty("launches_per_step", static_cast<int>(eager.launches));
}

TEST_P(EmulatedCalls, OneForAGraphBehindTheInputsKernel) {
  set_stream_order(StreamOrder::kEager);
  ResolvedRun run = run_of(GetParam(), Device::kCuda, 0);
  const RuntimeCounters graph = calls_of_a_step(run);
  expect_no_waiting(graph);
  EXPECT_EQ(graph.graph_launches, 1);
  EXPECT_EQ(graph.launches, 1);
}

// However many batches an evaluation has. Memory that is given back waits too, and each size of a
// batch has its own number of blocks.
TEST(EmulatedEvaluation, WaitsForNoBatch) {
  const auto calls = [](int64_t images_per_batch) {
    reset_runtime();
    set_stream_order(StreamOrder::kEager);
    ResolvedRun run = run_of(kLevels[0], Device::kCuda, 1);
    run.request.test.batch = images_per_batch;
    train_tiny(run);
    return runtime_counters.synchronizations - runtime_counters.allocations -
           runtime_counters.pinned_allocations;
  };
  calls(4);
  EXPECT_EQ(calls(1), calls(4));
}

// Two epochs of ten steps and a shorter one, each with its evaluation, in which f16 overflows. Some
// weights stay as they are in the second one, so its steps are another graph.
TEST_P(EmulatedSteps, GiveTheSameBitsAsAGraph) {
  set_stream_order(StreamOrder::kLazy);
  ResolvedRun run = run_of(GetParam(), Device::kCuda, 14);
  run.request.eval_freq = 1;
  if (GetParam().scales) run.request.precision.loss_scaling = LossScaling{.initial = 0x1p28F};
  add_all_that_acts_on_the_device(run);
  const TinyResult graph = train_tiny(run);
  EXPECT_GT(runtime_counters.graph_launches, 5);
  run.request.graph = false;
  const TinyResult eager = train_tiny(run);
  expect_same_weights(eager, graph);
  EXPECT_EQ(graph.training.final->loss, eager.training.final->loss);
}

// Muon's products are cuBLASLt's or our own there, and oneDNN's on the CPU.
TEST_P(EmulatedCalls, MuonAndLambLearnWhatTheCpuLearnsAndTheGraphTheSame) {
  set_stream_order(StreamOrder::kLazy);
  using enum OptimizerKind;
  for (const auto& [kind, muon_dtype] : {std::pair(kMuon, Dtype::kF32),
                                         std::pair(kMuon, Dtype::kBF16),
                                         std::pair(kLamb, Dtype::kF32)}) {
    const auto run_by = [&](Device device, int64_t steps) {
      ResolvedRun run = run_of(GetParam(), device, steps);
      run.request.optimizer.kind = kind;
      run.request.optimizer.muon_dtype = muon_dtype;
      run.request.loss.binary = kind == kLamb;
      return run;
    };
    const double rounding = muon_dtype == Dtype::kF32 ? 0 : 0.02;
    const double tolerance = 5 * GetParam().tolerance + rounding;
    EXPECT_LT(distance(train_tiny(run_by(Device::kCpu, 3)).weights,
                       train_tiny(run_by(Device::kCuda, 3)).weights),
              tolerance);
    const TinyResult graph = train_tiny(run_by(Device::kCuda, 4));
    ResolvedRun without = run_by(Device::kCuda, 4);
    without.request.graph = false;
    expect_same_weights(train_tiny(without), graph);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels,
                         EmulatedCalls,
                         ::testing::Values(kLevels[0], kLevels[2]),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Levels,
                         EmulatedSteps,
                         ::testing::ValuesIn(kLevels),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace lockstep::testing::steps_test
