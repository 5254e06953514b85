// Dropout in training on the device: the masks of the CPU, new ones at each replay of a graph.
#include <gtest/gtest.h>

#include "nn/layers.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/close.h"

namespace lockstep::testing::dropout_test {
namespace {

using emulation::runtime_counters;

class DroppingNet : public nn::Module {
 public:
  explicit DroppingNet(const nn::Init& init)
      : conv_(init, {.in_channels = 3, .out_channels = 4, .kernel = 3, .stride = 2}),
        dropout_(0.5, 3),
        fc_(init, {4, 2, 2}, 10) {
    register_module("conv", conv_);
    register_module("dropout", dropout_);
    register_module("fc", fc_);
  }
  Var forward(const Var& x) override {
    const Var y = nn::adaptive_avg_pool2d(nn::relu(conv_.forward(x)), 2, 2);
    return fc_.forward(dropout_.forward(y));
  }

 private:
  nn::Conv2d conv_;
  nn::Dropout dropout_;
  nn::Linear fc_;
};

std::unique_ptr<nn::Module> make_dropping(const nn::Init& init) {
  return std::make_unique<DroppingNet>(init);
}

std::unique_ptr<nn::Module> make_of_blocks(const nn::Init& init) {
  return std::make_unique<nn::CifarResNet>(init, 8, 10, 0.5);
}

TEST(EmulatedDropout, LearnsWhatTheCpuLearns) {
  const TinyResult want = train_tiny(tiny_run(Device::kCpu, 8), make_dropping);
  const TinyResult got = train_tiny(tiny_run(Device::kCuda, 8), make_dropping);
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (size_t i = 0; i < want.weights.size(); ++i) {
    EXPECT_TRUE(close(
        got.weights[i].span<float>(), want.weights[i].span<float>(), {.rel = 1e-5, .abs = 1e-6}));
  }
}

// Each image is seen in two views, which draw for themselves.
TEST(EmulatedDropout, BranchesAreLeftOutAsOnTheCpu) {
  const auto run_on = [](Device device) {
    trainers::ResolvedRun run = tiny_run(device, 3);
    run.batch.repeats = 2;
    return train_tiny(run, make_of_blocks);
  };
  const TinyResult want = run_on(Device::kCpu);
  const TinyResult got = run_on(Device::kCuda);
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (size_t i = 0; i < want.weights.size(); ++i) {
    if (want.weights[i].dtype() != Dtype::kF32) continue;
    EXPECT_TRUE(close(
        got.weights[i].span<float>(), want.weights[i].span<float>(), {.rel = 1e-3, .abs = 1e-4}));
  }
}

// Two epochs of five steps and a shorter one, whose images have other numbers the second time.
TEST(EmulatedDropout, GivesTheSameBitsAsAGraph) {
  for (const MakeTiny& make : {MakeTiny(make_dropping), MakeTiny(make_of_blocks)}) {
    emulation::reset_runtime();
    trainers::ResolvedRun run = tiny_run(Device::kCuda, 10);
    const auto train = [&] {
      return train_tiny(run, make, [](Stream&) {}, 0, std::make_shared<TinyShapes>(22));
    };
    const TinyResult graph = train();
    EXPECT_GT(runtime_counters.graph_launches, 5);
    run.request.graph = false;
    expect_same_weights(train(), graph);
  }
}

}  // namespace
}  // namespace lockstep::testing::dropout_test
