// Batch norm of f16 and bf16: every result is the f32 ops' on the same values, rounded.
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/support/isa.h"
#include "tests/support/batch_norm_levels.h"
#include "tests/support/batch_norm_step.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"

namespace lockstep::kernels::batch_norm_half_test {
namespace {

using testing::batch_norm_step;
using testing::BatchNormBodies;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;

Tensor widened(const Tensor& tensor) {
  return tensor.defined() ? rounded_to(Dtype::kF32, tensor) : Tensor();
}

void store_rounded(const Tensor& from, Tensor& to) {
  for (int64_t i = 0; i < to.numel(); ++i) testing::set(to, i, testing::get(from, i));
}

// The ops as they are specified for 16 bits: by way of the f32 ops.
namespace by_f32 {

using kernels::batch_norm_merge_stats;

void batch_norm_shard_stats(Stream& stream, const Shards& shards, const Tensor& in, Tensor& stats) {
  kernels::batch_norm_shard_stats(stream, shards, widened(in), stats);
}

void batch_norm_forward(Stream& stream, const Shards& shards, const BatchNormForwardArgs& args) {
  Tensor wide = widened(args.out);
  kernels::batch_norm_forward(stream,
                              shards,
                              {.in = widened(args.in),
                               .group_stats = args.group_stats,
                               .weight = args.weight,
                               .bias = args.bias,
                               .residual = widened(args.residual),
                               .params = args.params,
                               .out = wide});
  store_rounded(wide, args.out);
}

void batch_norm_shard_sums(Stream& stream, const Shards& shards, const BatchNormSumsArgs& args) {
  Tensor wide = widened(*args.grad_residual);
  kernels::batch_norm_shard_sums(stream,
                                 shards,
                                 {.in = widened(args.in),
                                  .out = widened(args.out),
                                  .grad_out = widened(args.grad_out),
                                  .group_stats = args.group_stats,
                                  .weight = args.weight,
                                  .bias = args.bias,
                                  .params = args.params,
                                  .grad_residual = &wide,
                                  .grad_weight = args.grad_weight,
                                  .grad_bias = args.grad_bias});
  if (wide.defined()) store_rounded(wide, *args.grad_residual);
}

void batch_norm_backward(Stream& stream, const Shards& shards, const BatchNormBackwardArgs& args) {
  Tensor wide = widened(args.grad_in);
  kernels::batch_norm_backward(stream,
                               shards,
                               {.in = widened(args.in),
                                .grad_out = widened(args.grad_out),
                                .group_stats = args.group_stats,
                                .group_grad_weight = args.group_grad_weight,
                                .group_grad_bias = args.group_grad_bias,
                                .weight = args.weight,
                                .bias = args.bias,
                                .params = args.params,
                                .grad_in = wide});
  store_rounded(wide, args.grad_in);
}

}  // namespace by_f32

const BatchNormBodies kOps = LS_BATCH_NORM_BODIES(kernels);
const BatchNormBodies kByF32 = LS_BATCH_NORM_BODIES(by_f32);

std::vector<BatchNormBodies> bodies_of_all_levels() {
  std::vector<BatchNormBodies> levels = testing::batch_norm_levels();
  levels.insert(levels.begin(), kOps);
  return levels;
}

void round_activations(BatchNormInputs& x, Dtype dtype) {
  for (Tensor* tensor : {&x.in, &x.grad_out, &x.residual}) {
    if (tensor->defined()) *tensor = rounded_to(dtype, *tensor);
  }
}

// With any NaN like any other.
void expect_same_bits(const BatchNormStep& got, const BatchNormStep& want) {
  EXPECT_TRUE(same_bits_or_nan(got.leaves, want.leaves));
  EXPECT_TRUE(same_bits_or_nan(got.out, want.out));
  EXPECT_TRUE(same_bits_or_nan(got.grad_weight_leaves, want.grad_weight_leaves));
  EXPECT_TRUE(same_bits_or_nan(got.grad_bias_leaves, want.grad_bias_leaves));
  EXPECT_TRUE(same_bits_or_nan(got.grad_in, want.grad_in));
  ASSERT_EQ(got.grad_residual.defined(), want.grad_residual.defined());
  if (!want.grad_residual.defined()) return;
  EXPECT_TRUE(same_bits_or_nan(got.grad_residual, want.grad_residual));
}

void expect_by_f32(const BatchNormInputs& x, const Shards& shards, const BatchNormParams& params) {
  Stream one;
  const BatchNormStep want = batch_norm_step(one, shards, x, params, kByF32);
  for (const BatchNormBodies& level : bodies_of_all_levels()) {
    for (const int threads : {1, 3}) {
      Stream stream(Device::kCpu, threads);
      expect_same_bits(batch_norm_step(stream, shards, x, params, level), want);
    }
  }
}

class BatchNormHalf : public ::testing::TestWithParam<std::tuple<Dtype, Shape>> {
 protected:
  Dtype dtype() const { return std::get<0>(GetParam()); }
  const Shape& shape() const { return std::get<1>(GetParam()); }
  BatchNormInputs inputs(bool with_residual) const {
    BatchNormInputs x(shape(), with_residual);
    round_activations(x, dtype());
    return x;
  }
};

TEST_P(BatchNormHalf, IsTheRoundedF32StepAtAnyLevelAndOnAnyThreads) {
  for (const bool with_residual : {false, true}) {
    for (const Activation activation : testing::activations_with(with_residual)) {
      for (const int64_t shard_count : {1, 4}) {  // some are empty
        SCOPED_TRACE(fmt::format("residual {}, {}, {} shards",
                                 with_residual,
                                 testing::name_of(activation),
                                 shard_count));
        const int64_t groups = shard_count > 1 && shape()[0] % 2 == 0 ? 2 : 1;
        const Shards shards = Shards::cut(shape()[0], shard_count, groups);
        expect_by_f32(inputs(with_residual), shards, {.eps = 1e-3F, .activation = activation});
      }
    }
  }
}

TEST_P(BatchNormHalf, GradientsMayTakeGradOutsMemory) {
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  Stream stream;
  for (const bool with_residual : {false, true}) {
    const BatchNormInputs x = inputs(with_residual);
    const BatchNormStep want =
        batch_norm_step(stream, shards, x, {.activation = Activation::kRelu}, kOps);
    Tensor grad = rounded_to(dtype(), x.grad_out);
    if (with_residual) {
      Tensor grad_weight = poisoned_tensor(want.grad_weight_leaves.shape(), Dtype::kF32);
      Tensor grad_bias = poisoned_tensor(want.grad_bias_leaves.shape(), Dtype::kF32);
      batch_norm_shard_sums(stream,
                            shards,
                            {.in = x.in,
                             .out = want.out,
                             .grad_out = grad,
                             .group_stats = want.stats,
                             .weight = x.weight,
                             .bias = x.bias,
                             .params = {.activation = Activation::kRelu},
                             .grad_residual = &grad,
                             .grad_weight = grad_weight,
                             .grad_bias = grad_bias});
      EXPECT_TRUE(same_bits(grad, want.grad_residual));
      EXPECT_TRUE(same_bits(grad_weight, want.grad_weight_leaves));
      EXPECT_TRUE(same_bits(grad_bias, want.grad_bias_leaves));
    }
    batch_norm_backward(
        stream,
        shards,
        {.in = x.in,
         .grad_out = grad,
         .group_stats = want.stats,
         .group_grad_weight = want.grad_weight,
         .group_grad_bias = want.grad_bias,
         .weight = x.weight,
         .bias = x.bias,
         .params = {.activation = with_residual ? Activation::kNone : Activation::kRelu},
         .grad_in = grad});
    EXPECT_TRUE(same_bits(grad, want.grad_in));
  }
}

TEST_P(BatchNormHalf, InferenceIsTheRoundedF32Inference) {
  const Tensor mean = random_tensor({shape()[1]}, 5);
  const Tensor var = random_tensor({shape()[1]}, 6, 0.5F, 2);
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  for (const bool with_residual : {false, true}) {
    const BatchNormInputs x = inputs(with_residual);
    const auto inference =
        [&](Stream& stream, const Tensor& in, const Tensor& residual, Dtype out_dtype) {
          Tensor out = poisoned_tensor(shape(), out_dtype);
          batch_norm_inference(stream,
                               shards,
                               {.in = in,
                                .running_mean = mean,
                                .running_var = var,
                                .weight = x.weight,
                                .bias = x.bias,
                                .residual = residual,
                                .params = {.activation = Activation::kRelu},
                                .out = out});
          return out;
        };
    Stream one;
    const Tensor want = inference(one, widened(x.in), widened(x.residual), Dtype::kF32);
    for (const int threads : {1, 3}) {
      Stream stream(Device::kCpu, threads);
      EXPECT_TRUE(
          same_bits(inference(stream, x.in, x.residual, dtype()), rounded_to(dtype(), want)));
    }
  }
}

// Infinities, NaN, denormals and what leaves the range when it is stored, each in channels of its
// own: in, grad_out, residual and weight have their own periods.
TEST_P(BatchNormHalf, TheEdgesOfTheRange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float tiny = dtype() == Dtype::kF16 ? 0x1p-24F : 0x1p-133F;
  const float huge = dtype() == Dtype::kF16 ? 65504.0F : 0x1.fep127F;
  const float edges[] = {tiny, -tiny, 3 * tiny, huge, -huge, kInf, -kInf, kNan, -0.0F, 0.0F};
  for (const bool with_residual : {false, true}) {
    BatchNormInputs x(shape(), with_residual);
    const int64_t channels = shape()[1];
    const auto spoil = [&](Tensor& tensor, int64_t period, int64_t first) {
      for (int64_t i = first, edge = 0; i < tensor.numel(); i += period) {
        tensor.data<float>()[i] = edges[edge++ % std::ssize(edges)];
      }
    };
    spoil(x.in, 4 * channels + 3, 1);
    spoil(x.grad_out, 3 * channels + 1, 2);
    if (with_residual) spoil(x.residual, 2 * channels + 1, 0);
    for (int64_t c = 0; c < channels; c += 4) x.weight.data<float>()[c] = c % 8 == 0 ? huge : tiny;
    round_activations(x, dtype());
    expect_by_f32(x, Shards::cut(shape()[0], 2, 1), {.activation = Activation::kRelu});
  }
}

// One side and the other of a tile's 32 lanes, overlapping tiles, rows of several pixels, blocks.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         BatchNormHalf,
                         ::testing::Combine(::testing::Values(Dtype::kF16, Dtype::kBF16),
                                            ::testing::Values(Shape{2, 3},
                                                              Shape{7, 100},
                                                              Shape{1, 3, 1, 2},
                                                              Shape{4, 10, 12, 11},
                                                              Shape{8, 16, 20, 21},
                                                              Shape{2, 33, 3, 3},
                                                              Shape{6, 64, 9, 9},
                                                              Shape{3, 300, 2, 2},
                                                              Shape{2, 1024, 1, 5},
                                                              Shape{3, 2080, 3, 1})));

// The gate is out as it is stored; where there is none, the value before it was rounded.
TEST(BatchNormHalfGate, AValueThatRoundsToZero) {
  Stream stream;
  const Shards shards = Shards::single(1);
  const Tensor in = Tensor::zeros({1, 1}, Dtype::kF16);
  const Tensor stats = testing::tensor_of(std::vector<double>{0, 1, 1}, {1, 3}, Dtype::kF32);
  const Tensor weight = testing::tensor_of(std::vector<double>{1}, {1}, Dtype::kF32);
  const Tensor bias = testing::tensor_of(std::vector<double>{0x1p-26}, {1}, Dtype::kF32);
  const Tensor grad_out = testing::tensor_of(std::vector<double>{3}, {1, 1}, Dtype::kF16);
  Tensor out = poisoned_tensor({1, 1}, Dtype::kF16);
  Tensor gated = poisoned_tensor({1, 1}, Dtype::kF16);
  Tensor grad_weight = poisoned_tensor({1, 1}, Dtype::kF32);
  Tensor grad_bias = poisoned_tensor({1, 1}, Dtype::kF32);
  Tensor none;
  const auto sums = [&](const Tensor& gate, Tensor& grad_residual) {
    batch_norm_shard_sums(stream,
                          shards,
                          {.in = in,
                           .out = gate,
                           .grad_out = grad_out,
                           .group_stats = stats,
                           .weight = weight,
                           .bias = bias,
                           .params = {.activation = Activation::kRelu},
                           .grad_residual = &grad_residual,
                           .grad_weight = grad_weight,
                           .grad_bias = grad_bias});
    return grad_bias.data<float>()[0];
  };
  batch_norm_forward(stream,
                     shards,
                     {.in = in,
                      .group_stats = stats,
                      .weight = weight,
                      .bias = bias,
                      .residual = in,
                      .params = {.activation = Activation::kRelu},
                      .out = out});
  EXPECT_EQ(testing::get(out, 0), 0);
  EXPECT_EQ(sums(out, gated), 0);
  EXPECT_EQ(testing::get(gated, 0), 0);
  EXPECT_EQ(sums(none, none), 3);
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_half_test
