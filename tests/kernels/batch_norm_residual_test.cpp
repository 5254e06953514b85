// Beside what batch_norm_test.cpp checks with and without a residual: memory that may be shared,
// gates at the edge of the numbers, derivatives, bad arguments.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/batch_norm.h"
#include "tests/support/batch_norm_step.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"

namespace lockstep::kernels::batch_norm_residual_test {
namespace {

using testing::batch_norm_step;
using testing::BatchNormBodies;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::doubles;
using testing::numerical_gradient;
using testing::poisoned_tensor;
using testing::same_bits;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
const BatchNormBodies kOps = LS_BATCH_NORM_BODIES(kernels);

// Channels whose tiles overlap, and pixels that fill no row.
const Shape kAwkwardShapes[] = {{3, 5, 3, 2}, {2, 33, 3, 3}, {3, 300, 2, 2}, {2, 1024, 2, 3}};

TEST(BatchNormInPlace, TheResidualsGradientMayBeGradOut) {
  for (const Shape& shape : kAwkwardShapes) {
    BatchNormInputs x(shape, true);
    const Shards shards = Shards::cut(shape[0], 2, 1);
    Stream stream;
    const BatchNormStep want =
        batch_norm_step(stream, shards, x, {.activation = Activation::kRelu}, kOps);
    Tensor grad_weight = poisoned_tensor(want.grad_weight_leaves.shape(), Dtype::kF32);
    Tensor grad_bias = poisoned_tensor(want.grad_bias_leaves.shape(), Dtype::kF32);
    batch_norm_shard_sums(stream,
                          shards,
                          {x.in,
                           want.out,
                           x.grad_out,
                           want.stats,
                           x.weight,
                           x.bias,
                           {.activation = Activation::kRelu},
                           &x.grad_out,
                           grad_weight,
                           grad_bias});
    EXPECT_TRUE(same_bits(x.grad_out, want.grad_residual));
    EXPECT_TRUE(same_bits(grad_weight, want.grad_weight_leaves));
    EXPECT_TRUE(same_bits(grad_bias, want.grad_bias_leaves));
  }
}

TEST(BatchNormInPlace, TheInputsGradientMayBeGradOut) {
  for (const Shape& shape : kAwkwardShapes) {
    BatchNormInputs x(shape);
    const Shards shards = Shards::cut(shape[0], 2, 1);
    Stream stream;
    const BatchNormStep want =
        batch_norm_step(stream, shards, x, {.activation = Activation::kRelu}, kOps);
    batch_norm_backward(stream,
                        shards,
                        {x.in,
                         x.grad_out,
                         want.stats,
                         want.grad_weight,
                         want.grad_bias,
                         x.weight,
                         x.bias,
                         {.activation = Activation::kRelu},
                         x.grad_out});
    EXPECT_TRUE(same_bits(x.grad_out, want.grad_in));
  }
}

// As torch.relu and its gradient: only out <= 0 closes the gate.
TEST(BatchNormResidual, NanAndInfinityPassTheGate) {
  Stream stream;
  BatchNormInputs x({2, 4, 5, 5}, true);
  const float values[] = {kNan, kInf, -kInf};
  std::copy_n(values, 3, x.residual.data<float>() + 40);
  const BatchNormStep got =
      batch_norm_step(stream, Shards::single(2), x, {.activation = Activation::kRelu}, kOps);
  const float* out = got.out.data<float>();
  EXPECT_TRUE(std::isnan(out[40]));
  EXPECT_EQ(out[41], kInf);
  EXPECT_EQ(out[42], 0);
  for (int64_t i = 0; i < x.in.numel(); ++i) {
    const float want = out[i] <= 0 ? 0 : x.grad_out.data<float>()[i];
    EXPECT_EQ(got.grad_residual.data<float>()[i], want) << i;
  }
  EXPECT_EQ(got.grad_residual.data<float>()[40], x.grad_out.data<float>()[40]);
}

TEST(BatchNormResidual, ReferenceGradientsAreItsDerivatives) {
  const BatchNormInputs x({3, 2, 2, 2}, true);
  const auto in = doubles(x.in);
  const auto weight = doubles(x.weight);
  const auto bias = doubles(x.bias);
  const auto residual = doubles(x.residual);
  const auto grad_out = doubles(x.grad_out);
  for (const Activation activation : testing::activations_with(true)) {
    const auto objective = [&](const auto& at_in, const auto& at_residual) {
      const auto out =
          reference::batch_norm_forward(at_in, weight, bias, 1e-3, activation, at_residual);
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += out[i] * grad_out[i];
      return sum;
    };
    const auto got =
        reference::batch_norm_backward(in, grad_out, weight, bias, 1e-3, activation, residual);
    const auto want_in =
        numerical_gradient([&](const auto& v) { return objective(v, residual); }, in);
    const auto want_residual =
        numerical_gradient([&](const auto& v) { return objective(in, v); }, residual);
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_NEAR(got.in[i], want_in[i], 1e-7);
      EXPECT_NEAR(got.residual[i], want_residual[i], 1e-7);
    }
  }
}

TEST(BatchNormResidual, BadArguments) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const auto f32 = [](const Shape& shape) { return Tensor::zeros(shape, Dtype::kF32); };
  const Tensor in = f32({2, 3});
  const Tensor stats = f32({1, 7});
  const Tensor channel = f32({3});
  Tensor out = f32({2, 3});
  Tensor row = f32({1, 3});
  Tensor wrong = f32({3, 2});
  Tensor none;
  EXPECT_THROW(batch_norm_forward(stream, shards, {in, stats, channel, channel, wrong, {}, out}),
               ShapeError);
  EXPECT_THROW(batch_norm_inference(
                   stream, shards, {in, channel, channel, channel, channel, wrong, {}, out}),
               ShapeError);
  const auto sums = [&](const Tensor& gate, Tensor& grad_residual, Activation activation) {
    batch_norm_shard_sums(stream,
                          shards,
                          {in,
                           gate,
                           in,
                           stats,
                           channel,
                           channel,
                           {.activation = activation},
                           &grad_residual,
                           row,
                           row});
  };
  EXPECT_NO_THROW(sums(in, out, Activation::kRelu));
  EXPECT_THROW(sums(in, none, Activation::kRelu), ShapeError);
  EXPECT_THROW(sums(none, out, Activation::kRelu), ShapeError);
  EXPECT_THROW(sums(in, out, Activation::kNone), ShapeError);
  EXPECT_THROW(sums(wrong, out, Activation::kRelu), ShapeError);
  EXPECT_THROW(sums(in, wrong, Activation::kRelu), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_residual_test
