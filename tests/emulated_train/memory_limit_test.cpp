// Training near the limit of the device's memory: what lockstep plan's arithmetic says is enough,
// and less is refused before the first step.
#include <gtest/gtest.h>

#include "core/cuda/device.h"
#include "tests/emulated_train/programs.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "trainers/planner/memory_plan.h"
#include "trainers/planner/run_engines.h"

namespace lockstep::testing::memory_limit_test {
namespace {

using emulation::runtime_counters;
using trainers::MemoryPlan;
using trainers::ResolvedRun;

constexpr int64_t kTrainImages = 42, kTestImages = 4;  // train_tiny's

// An epoch of three steps and a shorter one, and more; with an evaluation after either.
ResolvedRun two_epochs(int64_t steps, bool graph) {
  ResolvedRun run = tiny_run(Device::kCuda, steps);
  run.batch.images = 12;
  run.request.test.batch = 4;
  run.request.epochs = 2;
  run.request.eval_freq = 1;
  run.request.graph = graph;
  return run;
}

// As train_run() counts; images of the two data sets. With cuDNN's workspace, where there is one.
MemoryPlan plan_of(const ResolvedRun& run,
                   const trainers::ModelOptions& network,
                   int64_t trained,
                   int64_t tested) {
  MemoryPlan plan = trainers::plan_memory(run, network, trained, {tested, network.image});
  Stream stream(Device::kCuda);
  const data::Synthetic test(
      {.images = tested, .classes = network.classes, .shape = network.image});
  plan.workspace = trainers::largest_workspace(
      trainers::run_convolutions(run.request, run.batch, network, test), stream);
  return plan;
}

MemoryPlan plan_of(const ResolvedRun& run) {
  const trainers::ModelOptions network = {.arch = "resnet20", .classes = 10, .image = {3, 8, 8}};
  return plan_of(run, network, kTrainImages, kTestImages);
}

TEST(MemoryPlanned, CountsTheSizeOfTestedImages) {
  const trainers::ModelOptions network = {.arch = "resnet20", .classes = 10, .image = {3, 8, 8}};
  const ResolvedRun run = two_epochs(4, true);
  const auto bytes = [&](int64_t side) {
    return trainers::plan_memory(run, network, kTrainImages, {kTestImages, {3, side, side}})
        .step.evaluation;
  };
  EXPECT_GT(bytes(16), 3 * bytes(8));
}

TEST(MemoryPlanned, CountsGradientsThatAreRoundedToSendThem) {
  const trainers::ModelOptions network = {.arch = "resnet20", .classes = 10, .image = {3, 8, 8}};
  ResolvedRun run = two_epochs(4, true);
  const auto plan = [&] {
    return trainers::plan_memory(run, network, kTrainImages, {kTestImages, network.image});
  };
  const int64_t exact = plan().needed();
  run.request.exchange.wire = Dtype::kF16;
  EXPECT_EQ(plan().needed() - exact, plan().step.gradients / 2);
}

std::unique_ptr<nn::Module> make_resnet20(const nn::Init& init) {
  return std::make_unique<nn::CifarResNet>(init, 20);
}

void train(const ResolvedRun& run) {
  try {
    train_tiny(run, make_resnet20, [](Stream&) {}, plan_of(run).step.pool());
  } catch (const Error& error) {
    FAIL() << format_error(error);
  }
}

// Leaves so many bytes of the device's memory.
void limit(int64_t bytes) {
  emulation::reset_runtime({.devices = {{.memory_bytes = emulation::device_bytes_in_use() +
                                                         static_cast<size_t>(bytes)}}});
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
}

// Empties the caches that earlier trainings of this process have left.
void empty_caches() {
  limit(0);
  EXPECT_THROW((void)Tensor::empty({1 << 28}, Dtype::kF32, Device::kCuda), EnvironmentError);
}

class MemoryLimit : public ::testing::Test {
 protected:
  MemoryLimit() { empty_caches(); }
  ~MemoryLimit() override { emulation::reset_runtime(); }
};

class GraphMemory : public MemoryLimit {};
class PlannedMemory : public MemoryLimit {};

// Activations are a third of all: twice, they would not fit.
TEST_F(GraphMemory, AGraphHasOneCopyOfActivations) {
  const ResolvedRun run = two_epochs(6, true);
  const MemoryPlan plan = plan_of(run);
  limit(plan.needed() * 11 / 10);
  train(run);
  EXPECT_EQ(runtime_counters.graph_launches, 3);
}

TEST_F(PlannedMemory, WhatThePlanPromisesTrainsWithoutAGraphToo) {
  const ResolvedRun run = two_epochs(4, false);
  limit(plan_of(run).needed() * 11 / 10);
  train(run);
}

TEST_F(PlannedMemory, TheLargestBatchIsTheLastThatFits) {
  ResolvedRun run = two_epochs(6, true);
  const int64_t memory = plan_of(run).needed();
  for (const int64_t images : {6, 12, 24}) {
    run.batch.images = images;
    EXPECT_NEAR(static_cast<double>(plan_of(run).largest_batch(memory)), 12, 1) << images;
  }
}

// Of a ConvNet.
class NearTheLimit : public EmulatedProgram {
 protected:
  ProgramResult train(const std::string& run, int64_t images, bool graph, int64_t bytes) const {
    Arguments line = on_cuda(run, {"-b", std::to_string(images), "--epochs", "1"});
    line.insert(line.end(), {"--max-steps", "3"});
    if (!graph) line.push_back("--no-graph");
    return run_program(line,
                       {.environment = {{"LOCKSTEP_EMULATION_MEMORY", std::to_string(bytes)}}});
  }
  static int64_t needed(int64_t images, bool graph) {
    ResolvedRun run{.batch = {.images = images}};
    run.request.device = Device::kCuda;
    run.request.test.batch = 6;
    run.request.optimizer.momentum = 0.9;
    run.request.graph = graph;
    return plan_of(run, {.arch = "convnet", .image = {1, 28, 28}}, 160, 12).needed();
  }
};

class ProgramsInPlannedMemory : public NearTheLimit {};
class ProgramsBeyondMemory : public NearTheLimit {};

// Few large tensors leave the worst holes. Pools of just below 2 and 4 MiB have no room to spare.
TEST_F(ProgramsInPlannedMemory, AConvNetTrainsInWhatThePlanPromises) {
  expect_success(train("graph", 15, true, needed(15, true) * 11 / 10));
  expect_success(train("larger", 30, true, needed(30, true) * 11 / 10));
  expect_success(train("eager", 15, false, needed(15, false) * 11 / 10));
  expect_success(train("larger eager", 60, false, needed(60, false) * 11 / 10));
}

TEST_F(ProgramsBeyondMemory, RefuseBeforeTheFirstStep) {
  const ProgramResult refused = train("run", 16, true, needed(16, true) * 9 / 10);
  EXPECT_EQ(refused.exit_code, 5) << said(refused);
  EXPECT_EQ(count_of(refused.err, "a step of 16 images per rank does not fit the GPU's memory\n"),
            1)
      << refused.err;
  EXPECT_EQ(count_of(refused.err, "\n  why: "), 1) << refused.err;
  EXPECT_EQ(count_of(refused.err, "\n  try: at most "), 1) << refused.err;
  EXPECT_EQ(count_of(refused.err, "-b sets the batch"), 1) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

// Ranks that share a GPU share its memory. A launcher may show each rank a GPU of its own as the
// only one.
TEST_F(ProgramsBeyondMemory, RanksThatShowTheirOwnGpuHaveAllOfIt) {
  const std::string bytes = std::to_string(needed(8, true) * 3 / 2);
  const auto train = [&](const std::string& run, const std::string& mask) {
    const std::string script = "CUDA_VISIBLE_DEVICES=" + mask + " exec \"$0\" \"$@\"";
    Arguments line = {"bash", "-c", script, path_of_program("train_convnet_emulated")};
    const Arguments more = on_cuda(run, {"-b", "8", "--epochs", "1", "--max-steps", "2"});
    line.insert(line.end(), more.begin() + 1, more.end());
    return run_ranks(2,
                     line,
                     {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "2"},
                                      {"LOCKSTEP_EMULATION_MEMORY", bytes}}});
  };
  expect_success(train("own", "$OMPI_COMM_WORLD_LOCAL_RANK"));
  EXPECT_EQ(train("shared", "0").exit_code, 5);
}

}  // namespace
}  // namespace lockstep::testing::memory_limit_test
