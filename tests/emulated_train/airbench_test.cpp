// The parts of airbench's networks in training on the device: what the CPU learns.
#include "nn/airbench.h"

#include <gtest/gtest.h>

#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing::airbench_test {
namespace {

// The whole network with one narrow group, for images of 8 by 8 pixels: its norms see 18 values of
// a channel or more, enough for their small eps in 16 bits.
class TinyAirbench : public nn::Module {
 public:
  explicit TinyAirbench(const nn::Init& init)
      : whitening_(init, 3, 2),
        group_(init, 24, 8, {.residual = true}),
        pool_(3),
        linear_(init, 8, 10, false) {
    register_module("0", whitening_);
    register_module("2", group_);
    register_module("7", linear_);
  }
  Var forward(const Var& x) override {
    const Var y = group_.forward(nn::gelu(whitening_.forward(x), kernels::GeluForm::kTanh));
    return nn::scale(linear_.forward(pool_.forward(y)), 0.25F);
  }

 private:
  nn::Whitening whitening_;
  nn::AirbenchGroup group_;
  nn::MaxPool2d pool_;
  nn::Linear linear_;
};

std::unique_ptr<nn::Module> make_tiny_airbench(const nn::Init& init) {
  auto model = std::make_unique<TinyAirbench>(init);
  nn::fit_whitening(*model, {}, [] {
    const TinyShapes shapes(20);
    Tensor images = Tensor::empty({20, 3, 8, 8}, Dtype::kU8);
    for (int64_t i = 0; i < 20; ++i) {
      Tensor image = images.slice(i, 1);
      shapes.read(i, image.span<uint8_t>());
    }
    return images;
  });
  return model;
}

trainers::ResolvedRun run_of(OptLevel level, Dtype dtype, Device device) {
  trainers::ResolvedRun run = tiny_run(device, 6);
  run.batch.bn_groups = run.batch.shards;
  run.request.precision.level = level;
  run.request.precision.dtype = dtype;
  run.request.precision.master_weights = level != OptLevel::kO3;
  run.request.precision.keep_batchnorm_fp32 = level != OptLevel::kO3;
  return run;
}

TEST(EmulatedAirbench, LearnsWhatTheCpuLearns) {
  struct Level {
    OptLevel level;
    Dtype dtype;
    double tolerance;
  };
  for (const auto& [level, dtype, tolerance] : {Level{OptLevel::kO0, Dtype::kF16, 1e-3},
                                                Level{OptLevel::kO1, Dtype::kBF16, 0.1},
                                                Level{OptLevel::kO2, Dtype::kF16, 0.05},
                                                Level{OptLevel::kO3, Dtype::kF16, 0.05}}) {
    SCOPED_TRACE(static_cast<int>(level));
    emulation::reset_runtime();
    const TinyResult want = train_tiny(run_of(level, dtype, Device::kCpu), make_tiny_airbench);
    const TinyResult got = train_tiny(run_of(level, dtype, Device::kCuda), make_tiny_airbench);
    EXPECT_GT(emulation::runtime_counters.launches_of["gelu_backward"], 0);
    EXPECT_LT(distance(want.weights, got.weights), tolerance);
    EXPECT_TRUE(same_bits(want.weights.front(), got.weights.front())) << "the filters";
  }
}

TEST(EmulatedAirbench, GivesTheSameBitsAsAGraph) {
  emulation::reset_runtime();
  trainers::ResolvedRun run = run_of(OptLevel::kO0, Dtype::kF16, Device::kCuda);
  run.request.graph = true;
  const TinyResult graph = train_tiny(run, make_tiny_airbench);
  EXPECT_GT(emulation::runtime_counters.graph_launches, 1);
  run.request.graph = false;
  expect_same_weights(train_tiny(run, make_tiny_airbench), graph);
}

}  // namespace
}  // namespace lockstep::testing::airbench_test
