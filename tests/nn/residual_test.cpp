// Batch norm with a residual on the tape.
#include <vector>

#include <gtest/gtest.h>

#include "nn/layers.h"
#include "tests/reference/batch_norm.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::residual_test {
namespace {

using testing::close;
using testing::doubles;
using testing::random_tensor;
using testing::same_bits;

constexpr int64_t kImages = 6;
constexpr int64_t kChannels = 5;
const Shape kShape{kImages, kChannels, 3, 3};

class Residual : public ::testing::TestWithParam<Activation> {
 protected:
  Var leaf(const Tensor& value) {
    Var root(value, batch_);
    root.set_requires_grad(true);
    return root;
  }
  // Runs the tape from some loss of y.
  void backward(const Var& y) {
    const Tensor labels = Tensor::zeros({kImages}, Dtype::kI32);
    softmax_cross_entropy(global_avg_pool(y), labels).loss.backward();
  }

  Stream stream_{Device::kCpu, 2};
  std::shared_ptr<const Batch> batch_ = make_batch(stream_, Shards::cut(kImages, 3, 1));
  Mt19937 rng_{42};
  BatchNorm layer_{Init{rng_}, kChannels, {.activation = GetParam()}};
  Tensor in_ = random_tensor(kShape, 1, -1, 2);
  Tensor shortcut_ = random_tensor(kShape, 2);
};

TEST_P(Residual, MatchesReference) {
  const Var x = leaf(in_);
  const Var shortcut = leaf(shortcut_);
  const Var y = layer_.forward({x}, shortcut).value;
  backward(y);
  const Var result = leaf(y.value());
  backward(result);

  const std::vector<double> ones(kChannels, 1);
  const std::vector<double> zeros(kChannels, 0);
  const auto in = doubles(in_);
  const auto residual = doubles(shortcut_);
  EXPECT_TRUE(close(y.value().span<const float>(),
                    reference::batch_norm_forward(in, ones, zeros, 1e-5, GetParam(), residual),
                    {.rel = 2e-6, .abs = 2e-6}));
  const auto want = reference::batch_norm_backward(
      in, doubles(result.grad()), ones, zeros, 1e-5, GetParam(), residual);
  EXPECT_TRUE(close(shortcut.grad().span<const float>(), want.residual, {}));
  EXPECT_TRUE(close(x.grad().span<const float>(), want.in, {.rel = 1e-5, .abs = 1e-8}));
}

TEST_P(Residual, GradientsOfOneValueInBothPlacesAddUp) {
  const Var x = leaf(in_);
  const Var shortcut = leaf(in_);
  backward(layer_.forward({x}, shortcut).value);
  const Var both = leaf(in_);
  backward(layer_.forward({both}, both).value);
  Tensor sum = x.grad();
  batch_->accumulate(stream_, shortcut.grad(), sum);
  EXPECT_TRUE(same_bits(both.grad(), sum));
}

TEST_P(Residual, NoGradientForAShortcutThatWantsNone) {
  const Var x = leaf(in_);
  const Var shortcut(shortcut_, batch_);
  backward(layer_.forward({x}, shortcut).value);
  const Tensor grad = x.grad();
  const Var other = leaf(in_);
  backward(layer_.forward({other}, leaf(shortcut_)).value);
  EXPECT_FALSE(shortcut.grad().defined());
  EXPECT_TRUE(same_bits(grad, other.grad()));
}

TEST_P(Residual, EvaluationAddsItToo) {
  layer_.train(false);
  const Var x(in_, make_batch(stream_, Shards::single(kImages), false));
  const Var shortcut(shortcut_, x.shared_batch());
  const std::vector<double> ones(kChannels, 1);
  const std::vector<double> zeros(kChannels, 0);
  EXPECT_TRUE(
      close(layer_.forward({x}, shortcut).value.value().span<const float>(),
            reference::batch_norm_inference(
                doubles(in_), zeros, ones, ones, zeros, 1e-5, GetParam(), doubles(shortcut_)),
            {.rel = 1e-6, .abs = 1e-6}));
}

INSTANTIATE_TEST_SUITE_P(Activations,
                         Residual,
                         ::testing::Values(Activation::kNone, Activation::kRelu));

// Sums the squares of each gradient that reaches the input of a relu, in the order of the tape.
struct ReluGradients : TapeListener {
  void on_result(const TapeOp& /*op*/, const Tensor& /*result*/) override {}
  void on_gradient(const TapeOp& op, size_t /*i*/, Tensor& gradient) override {
    if (op.name != "relu") return;
    double sum = 0;
    for (const float value : gradient.span<float>()) sum += double{value} * double{value};
    heard.push_back(sum);
  }
  std::vector<double> heard;
};

struct ForkGradients {
  bool has_branch;
  Tensor in, shortcut;
};
// Runs a batch norm in groups of `per_group` shards whose value has two consumers.
ForkGradients fork_gradients(int64_t per_group, TapeListener* listener) {
  Stream stream;
  const auto batch = make_batch(stream, Shards::cut(kImages, 3, 3 / per_group), true, {}, listener);
  Mt19937 rng(1);
  BatchNorm norm(Init{rng}, kChannels, {.activation = Activation::kRelu});
  Var x(random_tensor(kShape, 1, -1, 2), batch), shortcut(random_tensor(kShape, 2), batch);
  x.set_requires_grad(true);
  shortcut.set_requires_grad(true);
  const Forked y = norm.forward({x}, shortcut);
  const Var sum = add(relu(y.value), relu(y.branch));
  softmax_cross_entropy(global_avg_pool(sum), Tensor::zeros({kImages}, Dtype::kI32))
      .loss.backward();
  return {!y.branch.same_as(y.value), x.grad(), shortcut.grad()};
}

TEST(ForkedBatchNorm, AddsTheGradientOfItsBranch) {
  ReluGradients listener;
  const ForkGradients apart = fork_gradients(1, nullptr);
  const ForkGradients on_tape = fork_gradients(1, &listener);
  EXPECT_TRUE(apart.has_branch);
  EXPECT_FALSE(on_tape.has_branch);
  EXPECT_TRUE(same_bits(apart.in, on_tape.in));
  EXPECT_TRUE(same_bits(apart.shortcut, on_tape.shortcut));
  ASSERT_EQ(listener.heard.size(), 2U);
  EXPECT_GT(listener.heard[0], 0);
  EXPECT_EQ(listener.heard[1], 4 * listener.heard[0]) << "squares of twice the gradient";
}

TEST(ForkedBatchNorm, HasNoBranchOverSeveralShards) {
  EXPECT_FALSE(fork_gradients(3, nullptr).has_branch);
}

TEST(SubsamplePad, GivesTheGradientBack) {
  Stream stream;
  Var x(random_tensor({2, 3, 4, 5}, 1), make_batch(stream, Shards::single(2)));
  x.set_requires_grad(true);
  const Var y = subsample_pad(x, 7);
  EXPECT_EQ(y.shape(), (Shape{2, 7, 2, 3}));
  const Tensor labels = Tensor::zeros({2}, Dtype::kI32);
  softmax_cross_entropy(global_avg_pool(y), labels).loss.backward();
  EXPECT_NE(x.grad().data<float>()[0], 0) << "pixel (0,0)";
  EXPECT_EQ(x.grad().data<float>()[3], 0) << "pixel (0,1)";
}

TEST(MaxPool2d, KernelStrideAndPad) {
  Stream stream;
  const Var x(random_tensor({2, 3, 9, 8}, 1), make_batch(stream, Shards::single(2), false));
  EXPECT_EQ(MaxPool2d(3, 2, 1).forward(x).shape(), (Shape{2, 3, 5, 4}));
  EXPECT_EQ(MaxPool2d(2).forward(x).shape(), (Shape{2, 3, 4, 4}));
}

}  // namespace
}  // namespace lockstep::nn::residual_test
