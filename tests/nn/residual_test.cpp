// Batch norm with a residual on the tape.
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

class Residual : public ::testing::TestWithParam<bool> {
 protected:
  bool relu() const { return GetParam(); }
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
  BatchNorm layer_{Init{rng_}, kChannels, GetParam()};
  Tensor in_ = random_tensor(kShape, 1, -1, 2);
  Tensor shortcut_ = random_tensor(kShape, 2);
};

TEST_P(Residual, MatchesReference) {
  const Var x = leaf(in_);
  const Var shortcut = leaf(shortcut_);
  const Var y = layer_.forward(x, shortcut);
  backward(y);
  const Var result = leaf(y.value());
  backward(result);

  const std::vector<double> ones(kChannels, 1);
  const std::vector<double> zeros(kChannels, 0);
  const auto in = doubles(in_);
  const auto residual = doubles(shortcut_);
  EXPECT_TRUE(close(y.value().span<const float>(),
                    reference::batch_norm_forward(in, ones, zeros, 1e-5, relu(), residual),
                    {.rel = 2e-6, .abs = 2e-6}));
  const auto want = reference::batch_norm_backward(
      in, doubles(result.grad()), ones, zeros, 1e-5, relu(), residual);
  EXPECT_TRUE(close(shortcut.grad().span<const float>(), want.residual, {}));
  EXPECT_TRUE(close(x.grad().span<const float>(), want.in, {.rel = 1e-5, .abs = 1e-8}));
}

TEST_P(Residual, GradientsOfOneValueInBothPlacesAddUp) {
  const Var x = leaf(in_);
  const Var shortcut = leaf(in_);
  backward(layer_.forward(x, shortcut));
  const Var both = leaf(in_);
  backward(layer_.forward(both, both));
  Tensor sum = x.grad();
  batch_->accumulate(stream_, shortcut.grad(), sum);
  EXPECT_TRUE(same_bits(both.grad(), sum));
}

TEST_P(Residual, NoGradientForAShortcutThatWantsNone) {
  const Var x = leaf(in_);
  const Var shortcut(shortcut_, batch_);
  backward(layer_.forward(x, shortcut));
  const Tensor grad = x.grad();
  const Var other = leaf(in_);
  backward(layer_.forward(other, leaf(shortcut_)));
  EXPECT_FALSE(shortcut.grad().defined());
  EXPECT_TRUE(same_bits(grad, other.grad()));
}

TEST_P(Residual, EvaluationAddsItToo) {
  layer_.train(false);
  const Var x(in_, make_batch(stream_, Shards::single(kImages), false));
  const Var shortcut(shortcut_, x.shared_batch());
  const std::vector<double> ones(kChannels, 1);
  const std::vector<double> zeros(kChannels, 0);
  EXPECT_TRUE(close(layer_.forward(x, shortcut).value().span<const float>(),
                    reference::batch_norm_inference(
                        doubles(in_), zeros, ones, ones, zeros, 1e-5, relu(), doubles(shortcut_)),
                    {.rel = 1e-6, .abs = 1e-6}));
}

INSTANTIATE_TEST_SUITE_P(Relu, Residual, ::testing::Bool());

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
