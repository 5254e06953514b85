#include <gtest/gtest.h>

#include "comm/single.h"
#include "core/allocator.h"
#include "nn/convnet.h"
#include "tests/support/random_tensor.h"
#include "tests/support/training.h"

namespace lockstep::nn::memory_test {
namespace {

TEST(Memory, AStepAllocatesNothingFromTheSystemAfterTheFirst) {
  Mt19937 rng(42);
  ConvNet model(Init{rng});
  Stream stream(Device::kCpu, 2);
  comm::SingleCommunicator single;
  testing::TrainingStep training(stream, single, model, {.lr = 0.01F, .momentum = 0.9F});
  const Tensor images = testing::random_tensor({32, 1, 28, 28}, 1, 0, 1);
  const Tensor labels = Tensor::zeros({32}, Dtype::kI32);
  const Shards shards = Shards::cut(32, 2, 1);
  training.run(images, labels, shards);
  const AllocatorStats first = cpu_allocator().stats();
  for (int i = 0; i < 3; ++i) training.run(images, labels, shards);
  const AllocatorStats later = cpu_allocator().stats();
  EXPECT_EQ(later.system_allocations, first.system_allocations);
  EXPECT_EQ(later.bytes_in_use, first.bytes_in_use);
}

}  // namespace
}  // namespace lockstep::nn::memory_test
