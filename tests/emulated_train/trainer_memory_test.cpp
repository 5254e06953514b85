// The library's Trainer on the fake device: evaluations lie in the steps' memory.
#include <gtest/gtest.h>

#include "comm/single.h"
#include "engine/trainer.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::testing::trainer_memory_test {
namespace {

TEST(TrainerMemory, AnEvaluationTakesNoMemoryOfItsOwn) {
  emulation::reset_runtime();
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  comm::SingleCommunicator alone;
  Mt19937 rng(3);
  const std::unique_ptr<nn::Module> network = make_resnet8(nn::Init{rng, Device::kCuda});
  Trainer trainer(
      alone,
      *network,
      {.train = std::make_shared<TinyShapes>(32), .test = std::make_shared<TinyShapes>(4)},
      {.batch = 8, .shards = 1, .test_batch = 4, .rank = {.device = Device::kCuda}});
  while (trainer.steps() < trainer.end()) trainer.step();
  EXPECT_GT(emulation::runtime_counters.graph_launches, 0);
  const int64_t allocations = emulation::runtime_counters.allocations;
  EXPECT_EQ(trainer.evaluate().images, 4);
  EXPECT_EQ(emulation::runtime_counters.allocations, allocations);
}

}  // namespace
}  // namespace lockstep::testing::trainer_memory_test
