// Training where convolutions are one pass with the batch norms around them. The forms are chosen
// by hand and computed step by step, with or without a cuDNN on the machine: cudnn_test.cpp has
// cuDNN's.
#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "kernels/conv/conv2d_fused.h"
#include "nn/functional.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"
#include "trainers/planner/step_convolutions.h"

namespace lockstep::testing::fused_convolutions_test {
namespace {

using emulation::reset_runtime;
using emulation::runtime_counters;
using emulation::set_stream_order;
using emulation::StreamOrder;
using kernels::ConvolutionPass;
using trainers::ResolvedRun;

enum class Forms { kNone, kSums, kAll };

ResolvedRun run_of(OptLevel level, int64_t steps) {
  ResolvedRun run = tiny_run(Device::kCuda, steps);
  run.batch.bn_groups = run.batch.shards;
  run.request.precision.level = level;
  if (level != OptLevel::kO0) {
    run.request.precision.master_weights = run.request.precision.keep_batchnorm_fp32 = true;
    run.request.precision.loss_scaling = LossScaling{.initial = 1024};
  }
  return run;
}

// For the layers of a narrow ResNet on images of 8x8.
void choose_forms(Stream& stream, const PrecisionConfig& precision, Forms forms) {
  trainers::ModelOptions network = trainers::usual_network("resnet20");
  network.image = {3, 8, 8};
  for (const auto& call :
       trainers::convolutions_of(trainers::run_dry_step(network, 2, precision))) {
    if (call.problem.pass != ConvolutionPass::kForward) continue;
    kernels::ConvolutionProblem form = call.problem;
    form.gives_sums = true;
    if (forms != Forms::kNone) kernels::choose_form(stream, form);
    form.norms_in = true;
    if (forms == Forms::kAll) kernels::choose_form(stream, form);
  }
}

TinyResult train(const ResolvedRun& run, Forms forms) {
  reset_runtime();
  set_stream_order(StreamOrder::kLazy);
  return train_tiny(run, make_resnet8, [&](Stream& stream) {
    choose_forms(stream, run.request.precision, forms);
  });
}

// Of the norms of all tensors.
double distance(const TinyResult& a, const TinyResult& b) {
  double squares = 0, all = 0;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    if (a.weights[i].dtype() != Dtype::kF32) continue;
    for (int64_t k = 0; k < a.weights[i].numel(); ++k) {
      const double one = double{a.weights[i].data<float>()[k]};
      const double other = double{b.weights[i].data<float>()[k]};
      squares += (one - other) * (one - other);
      all += one * one;
    }
  }
  return std::sqrt(squares / all);
}

int64_t launches_of(const char* op) {
  const auto found = runtime_counters.launches_of.find(op);
  return found == runtime_counters.launches_of.end() ? 0 : found->second;
}

class WithoutCudnn {
 public:
  WithoutCudnn() {
    if (const char* const text = std::getenv(kVariable)) was_ = text;
    unsetenv(kVariable);
  }
  WithoutCudnn(const WithoutCudnn&) = delete;
  WithoutCudnn& operator=(const WithoutCudnn&) = delete;
  ~WithoutCudnn() {
    if (was_) setenv(kVariable, was_->c_str(), 1);
  }

 private:
  static constexpr const char* kVariable = "LOCKSTEP_EMULATION_CUDNN";
  std::optional<std::string> was_;
};

class FusedTraining : public ::testing::TestWithParam<OptLevel> {
 protected:
  const WithoutCudnn machine_;
  double tolerance() const { return GetParam() == OptLevel::kO0 ? 1e-4 : 5e-3; }
};

TEST_P(FusedTraining, LearnsWhatOpsOfTheirOwnLearn) {
  ResolvedRun run = run_of(GetParam(), 3);
  run.request.graph = false;
  const TinyResult want = train(run, Forms::kNone);
  EXPECT_EQ(launches_of("conv2d_fused_forward"), 0);
  for (const Forms forms : {Forms::kSums, Forms::kAll}) {
    const TinyResult got = train(run, forms);
    EXPECT_GT(launches_of("conv2d_fused_forward"), 0);
    EXPECT_EQ(launches_of("conv2d_fused_backward_weight") > 0, forms == Forms::kAll);
    EXPECT_LT(distance(want, got), tolerance()) << static_cast<int>(forms);
    EXPECT_NEAR(got.training.final->loss, want.training.final->loss, 10 * tolerance());
  }
}

TEST_P(FusedTraining, GivesTheSameBitsAsAGraph) {
  ResolvedRun run = run_of(GetParam(), 6);
  const TinyResult graph = train(run, Forms::kAll);
  EXPECT_GT(runtime_counters.graph_launches, 1);
  run.request.graph = false;
  expect_same_weights(train(run, Forms::kAll), graph);
}

INSTANTIATE_TEST_SUITE_P(Levels,
                         FusedTraining,
                         ::testing::Values(OptLevel::kO0, OptLevel::kO2),
                         [](const auto& test) {
                           return test.param == OptLevel::kO0 ? "O0" : "O2";
                         });

struct Listener : TapeListener {
  void on_result(const TapeOp& /*op*/, const Tensor& result) override {
    EXPECT_TRUE(result.defined());
    ++results;
  }
  void on_gradient(const TapeOp& /*op*/, size_t /*input*/, Tensor& /*sum*/) override {}

  int results = 0;
};

// It asks for values that nobody else wants.
TEST(FusedTape, AListenerChangesNoBit) {
  const WithoutCudnn machine;
  reset_runtime();
  const auto state_after = [](TapeListener* listener) {
    Stream stream(Device::kCuda);
    choose_forms(stream, {}, Forms::kAll);
    Mt19937 rng(3);
    nn::CifarResNet model(nn::Init{rng, Device::kCuda}, 8);
    Tensor pixels = Tensor::empty({4, 3, 8, 8}, Dtype::kU8);
    for (int64_t i = 0; i < pixels.numel(); ++i) {
      pixels.data<uint8_t>()[i] = static_cast<uint8_t>(i * i % 251);
    }
    const Tensor labels = Tensor::zeros({4}, Dtype::kI32, Device::kCuda);
    Shards shards = Shards::cut(4, 2, 2);
    shards.step_images = 4;
    const Var images = nn::normalize_image(to_device(stream, pixels),
                                           nn::make_batch(stream, shards, true, {}, listener));
    nn::softmax_cross_entropy(model.forward(images), labels).loss.backward();
    std::vector<Tensor> state;
    for (const nn::StateEntry& entry : model.state()) state.push_back(to_cpu(entry.tensor));
    for (const Var& parameter : model.parameters()) {
      state.push_back(to_cpu(stream, parameter.grad()));
    }
    return state;
  };
  Listener listener;
  const std::vector<Tensor> want = state_after(nullptr), got = state_after(&listener);
  EXPECT_GT(listener.results, 15);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
}

// A convolution that takes a norm in could apply its ReLU.
TEST(FusedTape, ANormWithGeluStaysAnOp) {
  const WithoutCudnn machine;
  reset_runtime();
  const auto value_on = [](Device device) {
    Stream stream(device);
    Mt19937 rng(3);
    const nn::Init init{rng, device};
    const nn::Conv2dOptions options{
        .in_channels = 8, .out_channels = 8, .kernel = 3, .pad = 1, .bias = false};
    nn::Conv2d conv1(init, options), conv2(init, options);
    nn::BatchNorm norm(init, 8, {.activation = nn::Activation::kGelu});
    kernels::ConvolutionProblem form{.dtype = Dtype::kF32,
                                     .in = {4, 8, 6, 6},
                                     .weight = {8, 8, 3, 3},
                                     .params = {1, 1, 1, 1},
                                     .gives_sums = true};
    for (const bool norms_in : {false, true}) {
      form.norms_in = norms_in;
      if (device == Device::kCuda) kernels::choose_form(stream, form);
    }
    const Var x(to_device(stream, random_tensor(form.in, 1)),
                nn::make_batch(stream, Shards::cut(4, 2, 2)));
    return to_cpu(stream, conv2.to_norm(conv1.to_norm(x), norm).value.value());
  };
  const Tensor got = value_on(Device::kCuda);
  EXPECT_EQ(launches_of("conv2d_fused_forward"), 2) << "for their sums";
  EXPECT_EQ(launches_of("batch_norm_shard_forward"), 1);
  EXPECT_EQ(launches_of("batch_norm_shard_affine"), 0);
  const Tensor want = value_on(Device::kCpu);
  EXPECT_TRUE(close(got.span<const float>(), want.span<const float>(), {.rel = 1e-4, .abs = 1e-4}));
}

// A batch norm over all shards takes its statistics itself, whatever a convolution gives.
TEST(FusedTrainingOverShards, LeavesLargerGroupsAlone) {
  const WithoutCudnn machine;
  ResolvedRun run = run_of(OptLevel::kO0, 2);
  run.batch.bn_groups = 1;
  run.request.graph = false;
  const TinyResult want = train(run, Forms::kNone);
  const TinyResult got = train(run, Forms::kAll);
  EXPECT_EQ(launches_of("conv2d_fused_forward"), 0);
  expect_same_weights(got, want);
}

}  // namespace
}  // namespace lockstep::testing::fused_convolutions_test
