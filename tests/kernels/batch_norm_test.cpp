#include "kernels/norm/batch_norm.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/elementwise/add.h"
#include "kernels/elementwise/relu.h"
#include "kernels/support/isa.h"
#include "tests/reference/batch_norm.h"
#include "tests/support/batch_norm_levels.h"
#include "tests/support/batch_norm_step.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"

namespace lockstep::kernels::batch_norm_test {
namespace {

using testing::batch_norm_step;
using testing::BatchNormBodies;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::close;
using testing::doubles;
using testing::numerical_gradient;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::same_bits;
using testing::Tolerance;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const BatchNormBodies kOps = LS_BATCH_NORM_BODIES(kernels);

void expect_same_bits(const BatchNormStep& got, const BatchNormStep& want) {
  EXPECT_TRUE(same_bits(got.leaves, want.leaves));
  EXPECT_TRUE(same_bits(got.stats, want.stats));
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.grad_weight_leaves, want.grad_weight_leaves));
  EXPECT_TRUE(same_bits(got.grad_bias_leaves, want.grad_bias_leaves));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
  EXPECT_TRUE(same_bits(got.grad_residual, want.grad_residual));
}

void expect_group_matches_reference(const BatchNormInputs& x,
                                    const BatchNormStep& got,
                                    const BatchNormParams& params,
                                    int64_t groups,
                                    int64_t group) {
  const int64_t images = x.in.shape()[0] / groups;
  const auto part = [&](const Tensor& batch) { return batch.slice(group * images, images); };
  const auto residual = x.residual.defined() ? doubles(part(x.residual)) : std::vector<double>();
  const auto row = [&](const Tensor& rows) {
    return rows.span<const float>().subspan(static_cast<size_t>(group * rows.shape()[1]),
                                            static_cast<size_t>(rows.shape()[1]));
  };
  const auto channels = static_cast<size_t>(x.channels());
  const auto in = doubles(part(x.in));
  const auto weight = doubles(x.weight);
  const auto bias = doubles(x.bias);
  const auto moments = reference::batch_norm_moments(in, channels);
  const auto out =
      reference::batch_norm_forward(in, weight, bias, params.eps, params.activation, residual);
  const auto grads = reference::batch_norm_backward(
      in, doubles(part(x.grad_out)), weight, bias, params.eps, params.activation, residual);
  constexpr Tolerance kElement{.rel = 2e-6, .abs = 4e-6};
  const Tolerance sum = testing::f32_sum(images * x.pixels());
  EXPECT_TRUE(close(row(got.stats).first(channels), moments.mean, {.rel = 1e-6, .abs = 3e-7}));
  EXPECT_TRUE(close(row(got.stats).subspan(channels, channels), moments.m2, {2e-6, 1e-12}));
  EXPECT_EQ(row(got.stats).back(), static_cast<float>(images));
  EXPECT_TRUE(close(part(got.out).span<const float>(), out, kElement));
  EXPECT_TRUE(close(row(got.grad_bias), grads.bias, sum));
  EXPECT_TRUE(close(row(got.grad_weight), grads.weight, sum));
  EXPECT_TRUE(close(part(got.grad_in).span<const float>(), grads.in, kElement));
  if (!got.grad_residual.defined()) return;
  const bool exact = params.activation == Activation::kRelu;
  EXPECT_TRUE(close(
      part(got.grad_residual).span<const float>(), grads.residual, exact ? Tolerance{} : kElement));
}

// With and without a residual.
class BatchNormShapes : public ::testing::TestWithParam<std::tuple<Shape, bool>> {
 protected:
  const Shape& shape() const { return std::get<0>(GetParam()); }
  BatchNormInputs inputs() const { return BatchNormInputs(shape(), std::get<1>(GetParam())); }
  std::vector<Activation> activations() const {
    return testing::activations_with(std::get<1>(GetParam()));
  }
};

TEST_P(BatchNormShapes, MatchesReference) {
  const BatchNormInputs x = inputs();
  const int64_t images = shape()[0];
  for (const Activation activation : activations()) {
    const BatchNormParams params{.eps = 1e-3F, .activation = activation};
    for (const int64_t groups : {1, 2}) {
      if (images % groups != 0) continue;
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format(
            "{}, {} groups, {} threads", testing::name_of(activation), groups, threads));
        Stream stream(Device::kCpu, threads);
        const Shards shards = Shards::cut(images, 4, groups);  // some are empty
        const BatchNormStep got = batch_norm_step(stream, shards, x, params, kOps);
        for (int64_t g = 0; g < groups; ++g) {
          expect_group_matches_reference(x, got, params, groups, g);
        }
      }
    }
  }
}

TEST_P(BatchNormShapes, ThreadsDoNotChangeABit) {
  const BatchNormInputs x = inputs();
  const BatchNormParams params{.activation = activations().back()};
  for (const int64_t shard_count : {1, 2, 5}) {
    const Shards shards = Shards::cut(shape()[0], shard_count, 1);
    Stream one(Device::kCpu, 1);
    const BatchNormStep want = batch_norm_step(one, shards, x, params, kOps);
    for (const int threads : {2, 3}) {
      Stream stream(Device::kCpu, threads);
      expect_same_bits(batch_norm_step(stream, shards, x, params, kOps), want);
    }
  }
}

TEST_P(BatchNormShapes, LevelsDoNotChangeABit) {
  const BatchNormInputs x = inputs();
  const Shards shards = Shards::cut(shape()[0], 3, 1);
  Stream stream;
  for (const Activation activation : activations()) {
    const BatchNormParams params{.activation = activation};
    const BatchNormStep want = batch_norm_step(stream, shards, x, params, kOps);
    for (const BatchNormBodies& level : testing::batch_norm_levels()) {
      expect_same_bits(batch_norm_step(stream, shards, x, params, level), want);
    }
  }
}

// What a rank computes that owns one shard only, with its group's results.
TEST_P(BatchNormShapes, ShardByShardIsTheSameBits) {
  const BatchNormInputs x = inputs();
  const BatchNormParams params{.activation = activations().back()};
  const int64_t groups = shape()[0] % 2 == 0 ? 2 : 1;
  const Shards all = Shards::cut(shape()[0], 4, groups);
  Stream stream(Device::kCpu, 2);
  const BatchNormStep want = batch_norm_step(stream, all, x, params, kOps);
  for (int64_t k = 0; k < all.local(); ++k) {
    const int64_t images = all.count(k);
    const Shards one{.offsets = {0, images}, .total = 4, .first = k, .groups = groups};
    const auto part = [&](const Tensor& batch) { return batch.slice(all.begin(k), images); };
    const auto group = [&](const Tensor& rows) { return rows.slice(all.group(k), 1); };
    BatchNormStep got{.leaves = poisoned_tensor({1, want.leaves.shape()[1]}, Dtype::kF32),
                      .stats = group(want.stats),
                      .out = poisoned_tensor(part(x.in).shape(), Dtype::kF32),
                      .grad_weight_leaves = poisoned_tensor({1, x.channels()}, Dtype::kF32),
                      .grad_bias_leaves = poisoned_tensor({1, x.channels()}, Dtype::kF32),
                      .grad_weight = group(want.grad_weight),
                      .grad_bias = group(want.grad_bias),
                      .grad_in = poisoned_tensor(part(x.in).shape(), Dtype::kF32)};
    const Tensor in = part(x.in);
    const Tensor grad_out = part(x.grad_out);
    const bool gated = x.residual.defined();
    const Tensor residual = gated ? part(x.residual) : Tensor();
    const bool writes = want.grad_residual.defined();
    if (writes) got.grad_residual = poisoned_tensor(in.shape(), Dtype::kF32);
    batch_norm_shard_stats(stream, one, in, got.leaves);
    batch_norm_forward(stream, one, {in, got.stats, x.weight, x.bias, residual, params, got.out});
    batch_norm_shard_sums(stream,
                          one,
                          {in,
                           gated ? got.out : Tensor(),
                           grad_out,
                           got.stats,
                           x.weight,
                           x.bias,
                           params,
                           &got.grad_residual,
                           got.grad_weight_leaves,
                           got.grad_bias_leaves});
    batch_norm_backward(stream,
                        one,
                        {in,
                         writes ? got.grad_residual : grad_out,
                         got.stats,
                         got.grad_weight,
                         got.grad_bias,
                         x.weight,
                         x.bias,
                         {.activation = writes ? Activation::kNone : params.activation},
                         got.grad_in});
    EXPECT_TRUE(same_bits(got.leaves, want.leaves.slice(k, 1)));
    EXPECT_TRUE(same_bits(got.out, part(want.out)));
    EXPECT_TRUE(same_bits(got.grad_weight_leaves, want.grad_weight_leaves.slice(k, 1)));
    EXPECT_TRUE(same_bits(got.grad_bias_leaves, want.grad_bias_leaves.slice(k, 1)));
    EXPECT_TRUE(same_bits(got.grad_in, part(want.grad_in)));
    if (writes) {
      EXPECT_TRUE(same_bits(got.grad_residual, part(want.grad_residual)));
    }
  }
}

TEST_P(BatchNormShapes, FusedStepsAreSeparateOnes) {
  const BatchNormInputs x = inputs();
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  Stream stream;
  BatchNormInputs masked = x;
  masked.residual = Tensor();
  Tensor sum = batch_norm_step(stream, shards, masked, {}, kOps).out;
  if (x.residual.defined()) add(stream, x.residual, sum);
  Tensor out = poisoned_tensor(shape(), Dtype::kF32);
  relu_forward(stream, sum, out);
  masked.grad_out = poisoned_tensor(shape(), Dtype::kF32);
  relu_backward(stream, out, x.grad_out, masked.grad_out);
  BatchNormStep separate = batch_norm_step(stream, shards, masked, {}, kOps);
  separate.out = out;
  if (x.residual.defined()) separate.grad_residual = masked.grad_out;
  expect_same_bits(batch_norm_step(stream, shards, x, {.activation = Activation::kRelu}, kOps),
                   separate);
}

// From one value to several blocks of rows, channels on both sides of a tile's 32 lanes.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         BatchNormShapes,
                         ::testing::Combine(::testing::Values(Shape{2, 3},
                                                              Shape{16, 5},
                                                              Shape{7, 100},
                                                              Shape{1, 3, 1, 2},
                                                              Shape{4, 1, 9, 9},
                                                              Shape{4, 5, 3, 2},
                                                              Shape{4, 10, 12, 11},
                                                              Shape{2, 16, 5, 5},
                                                              Shape{8, 16, 20, 21},
                                                              Shape{2, 17, 3, 3},
                                                              Shape{3, 32, 16, 15},
                                                              Shape{2, 33, 3, 3},
                                                              Shape{6, 64, 9, 9},
                                                              Shape{3, 300, 2, 2},
                                                              Shape{2, 1024, 1, 5},
                                                              Shape{3, 2080, 3, 1}),
                                            ::testing::Bool()));

TEST(BatchNorm, ReferenceGradientsAreItsDerivatives) {
  const BatchNormInputs x({3, 2, 2, 2});
  const auto in = doubles(x.in);
  const auto weight = doubles(x.weight);
  const auto bias = doubles(x.bias);
  const auto grad_out = doubles(x.grad_out);
  for (const Activation activation : testing::activations_with(false)) {
    const auto objective = [&](const auto& at_in, const auto& at_weight, const auto& at_bias) {
      const auto out = reference::batch_norm_forward(at_in, at_weight, at_bias, 1e-3, activation);
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += out[i] * grad_out[i];
      return sum;
    };
    const auto expect_near = [](const auto& got, const auto& want) {
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-7);
    };
    const auto got = reference::batch_norm_backward(in, grad_out, weight, bias, 1e-3, activation);
    expect_near(got.in,
                numerical_gradient([&](const auto& v) { return objective(v, weight, bias); }, in));
    expect_near(got.weight,
                numerical_gradient([&](const auto& v) { return objective(in, v, bias); }, weight));
    expect_near(got.bias,
                numerical_gradient([&](const auto& v) { return objective(in, weight, v); }, bias));
  }
}

TEST(BatchNorm, NanStaysInItsChannelAndPassesRelu) {
  Stream stream;
  const Shards shards = Shards::single(2);
  BatchNormInputs x({2, 4, 5, 5});
  const BatchNormStep clean =
      batch_norm_step(stream, shards, x, {.activation = Activation::kRelu}, kOps);
  x.in.data<float>()[2] = kNan;
  const BatchNormStep got =
      batch_norm_step(stream, shards, x, {.activation = Activation::kRelu}, kOps);
  double sum = 0;
  for (int64_t i = 0; i < x.in.numel(); ++i) {
    if (i % 4 == 2) {
      EXPECT_TRUE(std::isnan(got.out.data<float>()[i]));
      EXPECT_TRUE(std::isnan(got.grad_in.data<float>()[i]));
      sum += x.grad_out.data<float>()[i];
    } else {
      EXPECT_EQ(got.out.data<float>()[i], clean.out.data<float>()[i]);
      EXPECT_EQ(got.grad_in.data<float>()[i], clean.grad_in.data<float>()[i]);
    }
  }
  EXPECT_NEAR(got.grad_bias.data<float>()[2], sum, 1e-5) << "the mask must let every g through";
}

TEST(BatchNorm, InferenceMatchesReference) {
  for (const Shape& shape : {Shape{5, 10}, Shape{3, 16, 31, 13}, Shape{2, 40, 3, 3}}) {
    const BatchNormInputs x(shape, true);
    const Tensor mean = random_tensor({shape[1]}, 5);
    const Tensor var = random_tensor({shape[1]}, 6, 0.5F, 2);
    for (const int threads : {1, 3}) {
      for (const bool with_residual : {false, true}) {
        const Tensor residual = with_residual ? x.residual : Tensor();
        Stream stream(Device::kCpu, threads);
        Tensor out = poisoned_tensor(shape, Dtype::kF32);
        batch_norm_inference(
            stream,
            Shards::cut(shape[0], 2, 1),
            {x.in, mean, var, x.weight, x.bias, residual, {.activation = Activation::kRelu}, out});
        const auto want = reference::batch_norm_inference(
            doubles(x.in),
            doubles(mean),
            doubles(var),
            doubles(x.weight),
            doubles(x.bias),
            1e-5,
            Activation::kRelu,
            with_residual ? doubles(residual) : std::vector<double>());
        EXPECT_TRUE(close(out.span<const float>(), want, {.rel = 2e-6, .abs = 1e-6}));
      }
    }
  }
}

TEST(BatchNorm, AGroupWithoutImagesHasZerosForGradients) {
  Stream stream;
  const Shards shards{.offsets = {0, 0, 4}, .total = 2, .groups = 2, .step_images = 4};
  const BatchNormStep step = batch_norm_step(stream, shards, BatchNormInputs({4, 3}), {}, kOps);
  for (const Tensor& leaves : {step.grad_weight_leaves, step.grad_bias_leaves}) {
    for (const float leaf : leaves.slice(0, 1).span<const float>()) EXPECT_EQ(leaf, 0);
  }
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_test
