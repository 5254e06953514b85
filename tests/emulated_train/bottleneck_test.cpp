// A bottleneck with BlurPool and squeeze-and-excitation in training on the device: what the CPU
// learns.
#include <gtest/gtest.h>

#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/close.h"

namespace lockstep::testing::bottleneck_test {
namespace {

class TinyBottleneck : public nn::Module {
 public:
  explicit TinyBottleneck(const nn::Init& init)
      : stem_(init,
              {.in_channels = 3, .out_channels = kWidth, .kernel = 3, .pad = 1, .bias = false}),
        norm_(init, kWidth, {.activation = nn::Activation::kRelu}),
        block_(init,
               {.in_channels = kWidth,
                .planes = kWidth,
                .stride = 2,
                .squeeze_excite = true,
                .blur_pool = true},
               std::make_unique<nn::ProjectionShortcut>(init, kWidth, kOut, 2, true)),
        linear_(init, kOut, 10) {
    register_module("stem", stem_);
    register_module("norm", norm_);
    register_module("block", block_);
    register_module("linear", linear_);
  }
  Var forward(const Var& x) override {
    return linear_.forward(nn::global_avg_pool(block_.forward(norm_.forward(stem_.to_norm(x)))));
  }

 private:
  static constexpr int64_t kWidth = 16, kOut = kWidth * nn::Bottleneck::kExpansion;

  nn::Conv2d stem_;
  nn::BatchNorm norm_;
  nn::Bottleneck block_;
  nn::Linear linear_;
};

TinyResult train_bottleneck(OptLevel level, Dtype dtype, Device device) {
  trainers::ResolvedRun run = tiny_run(device, 5);
  run.request.precision.level = level;
  run.request.precision.dtype = dtype;
  run.request.precision.master_weights = run.request.precision.keep_batchnorm_fp32 = true;
  return train_tiny(run,
                    [](const nn::Init& init) { return std::make_unique<TinyBottleneck>(init); });
}

TEST(EmulatedBottleneck, LearnsWhatTheCpuLearns) {
  struct Level {
    OptLevel level;
    Dtype dtype;
    double tolerance;
  };
  for (const Level& level : {Level{OptLevel::kO0, Dtype::kF32, 1e-4},
                             Level{OptLevel::kO1, Dtype::kF16, 0.02},
                             Level{OptLevel::kO2, Dtype::kBF16, 0.05}}) {
    SCOPED_TRACE(name_of(level.level));
    emulation::reset_runtime();
    emulation::set_stream_order(emulation::StreamOrder::kLazy);
    const TinyResult want = train_bottleneck(level.level, level.dtype, Device::kCpu);
    const TinyResult got = train_bottleneck(level.level, level.dtype, Device::kCuda);
    EXPECT_LT(distance(want.weights, got.weights), level.tolerance);
    EXPECT_NEAR(got.training.final->loss, want.training.final->loss, 10 * level.tolerance);
  }
}

}  // namespace
}  // namespace lockstep::testing::bottleneck_test
