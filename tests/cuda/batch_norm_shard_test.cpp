// Groups of one shard: forward and backward in one call each.
#include <fmt/core.h>

#include "kernels/elementwise/add.h"
#include "kernels/norm/batch_norm.h"
#include "tests/support/cuda_batch_norm.h"

namespace lockstep::kernels::batch_norm_shard_test {
namespace {

using testing::as_f32;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

constexpr float kMomentum = 0.25F;

// On the device.
struct ShardStep {
  BatchNormRunning running;
  Tensor stats;  // (shards, 2C+1)
  Tensor out;
  Tensor grad_residual;           // undefined unless ReLU follows a residual, or GELU follows
  Tensor grad_weight, grad_bias;  // (shards, C)
  Tensor grad_in;
};

class CudaBatchNormShard : public testing::CudaBatchNormTest {
 protected:
  // The first has at least two values per channel, some may be empty.
  Shards shards() const {
    const int64_t images = shape()[0];
    return {.offsets = {0, (images + 1) / 2, (images + 1) / 2, images}, .total = 3, .groups = 3};
  }

  BatchNormRunning running_of(int64_t channels) {
    return {upload(random_tensor({channels}, 6)),
            upload(random_tensor({channels}, 7, 0.5F, 2)),
            kMomentum};
  }
  ShardStep step(const BatchNormInputs& x, const BatchNormParams& params, const Tensor& sums = {}) {
    const Shape leaves{3, x.channels()};
    ShardStep step{.running = running_of(x.channels()),
                   .stats = poisoned({3, 2 * x.channels() + 1}, Dtype::kF32),
                   .out = poisoned(shape(), dtype()),
                   .grad_residual = {},
                   .grad_weight = poisoned(leaves, Dtype::kF32),
                   .grad_bias = poisoned(leaves, Dtype::kF32),
                   .grad_in = poisoned(shape(), dtype())};
    batch_norm_shard_forward(stream_,
                             shards(),
                             {x.in, sums, x.weight, x.bias, params, &step.running, step.stats},
                             x.residual,
                             step.out);
    const bool gated = x.residual.defined() && params.activation == Activation::kRelu;
    if (gated || params.activation == Activation::kGelu) {
      step.grad_residual = poisoned(shape(), dtype());
    }
    batch_norm_shard_backward(stream_,
                              shards(),
                              {x.in,
                               gated ? step.out : Tensor(),
                               x.grad_out,
                               step.stats,
                               x.weight,
                               x.bias,
                               params,
                               &step.grad_residual,
                               step.grad_weight,
                               step.grad_bias},
                              {},
                              step.grad_in);
    return step;
  }
  // As a convolution gives them, on the device. Requires: x on the CPU.
  Tensor sums_of(const BatchNormInputs& x) {
    const int64_t channels = x.channels(), image = x.in.shape().stride0();
    Tensor sums = Tensor::empty({2, 3, channels}, Dtype::kF32);
    const float* values = x.in.data<float>();
    for (int64_t k = 0; k < 3; ++k) {
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0, square_sum = 0;
        for (int64_t at = shards().begin(k) * image + c; at < shards().begin(k + 1) * image;
             at += channels) {
          sum += double{values[at]};
          square_sum += double{values[at]} * double{values[at]};
        }
        sums.data<float>()[k * channels + c] = static_cast<float>(sum);
        sums.data<float>()[(3 + k) * channels + c] = static_cast<float>(square_sum);
      }
    }
    return upload(sums);
  }
  void expect_reference(bool with_residual, Activation activation, bool has_sums = false);
};

void CudaBatchNormShard::expect_reference(bool with_residual,
                                          Activation activation,
                                          bool has_sums) {
  SCOPED_TRACE(fmt::format(
      "residual {}, {}, sums {}", with_residual, testing::name_of(activation), has_sums));
  const BatchNormInputs x = inputs(with_residual);
  const BatchNormParams params{.eps = 1e-3F, .activation = activation};
  const ShardStep made = step(on_device(x), params, has_sums ? sums_of(x) : Tensor());
  const BatchNormStep got = on_cpu({.leaves = {},
                                    .stats = made.stats,
                                    .out = made.out,
                                    .grad_weight_leaves = {},
                                    .grad_bias_leaves = {},
                                    .grad_weight = made.grad_weight,
                                    .grad_bias = made.grad_bias,
                                    .grad_in = made.grad_in,
                                    .grad_residual = made.grad_residual});
  for (int64_t k = 0; k < 3; ++k) {
    const int64_t images = shards().count(k);
    if (images > 0) {
      // Values are 2 at most; each rounding takes half an ulp of the sum of their squares.
      const double squares = 4 * static_cast<double>(images * x.pixels());
      expect_group_matches_reference(
          x, got, params, shards().begin(k), images, k, has_sums ? 0x1p-22 * squares : 1e-12);
      continue;
    }
    for (const Tensor& rows : {got.stats, got.grad_weight, got.grad_bias}) {
      EXPECT_EQ(values_of(rows.slice(k, 1)),
                std::vector<double>(static_cast<size_t>(rows.shape()[1])));
    }
  }
}

TEST_P(CudaBatchNormShard, MatchesReference) {
  expect_reference(false, Activation::kNone);
  expect_reference(false, Activation::kRelu);
  expect_reference(true, Activation::kRelu);
  expect_reference(false, Activation::kGelu);
}

TEST_P(CudaBatchNormShard, MatchesReferenceFromSums) {
  expect_reference(false, Activation::kNone, true);
  expect_reference(true, Activation::kRelu, true);
  expect_reference(false, Activation::kGelu, true);
}

// In place of the normalized batch; the statistics are the same.
TEST_P(CudaBatchNormShard, GivesScalesAndShifts) {
  const BatchNormInputs x = inputs(false), there = on_device(x);
  const BatchNormParams params{.eps = 1e-3F};
  const Tensor sums = sums_of(x);
  const ShardStep want = step(there, params, sums);
  const int64_t channels = x.channels();
  BatchNormRunning running = running_of(channels);
  Tensor stats = poisoned({3, 2 * channels + 1}, Dtype::kF32);
  Tensor affine = poisoned({2, 3, channels}, dtype());
  batch_norm_shard_affine(stream_,
                          shards(),
                          {there.in, sums, there.weight, there.bias, params, &running, stats},
                          affine);
  EXPECT_TRUE(same_bits(download(stats), download(want.stats)));
  EXPECT_TRUE(same_bits(download(running.mean), download(want.running.mean)));
  EXPECT_TRUE(same_bits(download(running.var), download(want.running.var)));

  const std::vector<double> rows = values_of(download(affine));
  const float* in = x.in.data<float>();
  std::vector<double> got;
  for (int64_t k = 0; k < 3; ++k) {
    const int64_t image = x.in.shape().stride0();
    for (int64_t at = shards().begin(k) * image; at < shards().begin(k + 1) * image; ++at) {
      const auto row = static_cast<size_t>(k * channels + at % channels);
      got.push_back(double{in[at]} * rows[row] + rows[row + static_cast<size_t>(3 * channels)]);
    }
  }
  // Of the scale's rounding, and the shift's, each up to half an ulp of 8.
  const double ulp = dtype() == Dtype::kF16 ? 0x1p-8 : dtype() == Dtype::kBF16 ? 0x1p-5 : 1e-5;
  const Tensor out = download(want.out);
  const float* memory = as_f32(out).data<float>();
  ASSERT_EQ(std::ssize(got), out.numel());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], double{memory[i]}, 2 * ulp) << i;
}

// What goes on from the statistics: the running ones, a value made again.
TEST_P(CudaBatchNormShard, StatisticsGiveTheSameBitsAgain) {
  const BatchNormInputs x = on_device(inputs(true));
  const BatchNormParams params{.activation = Activation::kRelu};
  const ShardStep got = step(x, params);
  Tensor out = poisoned(shape(), dtype());
  batch_norm_forward(
      stream_, shards(), {x.in, got.stats, x.weight, x.bias, x.residual, params, out});
  EXPECT_TRUE(same_bits(download(out), download(got.out)));

  Tensor mean = upload(random_tensor({x.channels()}, 6));
  Tensor var = upload(random_tensor({x.channels()}, 7, 0.5F, 2));
  const Tensor first = got.stats.slice(0, 1).view({2 * x.channels() + 1});
  batch_norm_update_running(stream_, first, x.pixels(), kMomentum, mean, var);
  EXPECT_TRUE(same_bits(download(got.running.mean), download(mean)));
  EXPECT_TRUE(same_bits(download(got.running.var), download(var)));
}

TEST_P(CudaBatchNormShard, AlignmentDoesNotChangeABit) {
  const BatchNormInputs x = inputs(true);
  const ShardStep aligned = step(on_device(x), {.activation = Activation::kRelu});
  const ShardStep got = step(on_device(x, false), {.activation = Activation::kRelu});
  EXPECT_TRUE(same_bits(download(got.stats), download(aligned.stats)));
  EXPECT_TRUE(same_bits(download(got.out), download(aligned.out)));
  EXPECT_TRUE(same_bits(download(got.grad_weight), download(aligned.grad_weight)));
  EXPECT_TRUE(same_bits(download(got.grad_in), download(aligned.grad_in)));
}

// The gradient of the input over grad_out, gated there or not.
TEST_P(CudaBatchNormShard, WritesOverTheGradientItReads) {
  for (const bool with_residual : {false, true}) {
    const BatchNormInputs x = on_device(inputs(with_residual));
    const BatchNormParams params{.activation = Activation::kRelu};
    const ShardStep want = step(x, params);
    Tensor grad = upload(download(x.grad_out));
    Tensor gated = with_residual ? grad : Tensor();
    Tensor grad_weight = poisoned({3, x.channels()}, Dtype::kF32);
    Tensor grad_bias = poisoned({3, x.channels()}, Dtype::kF32);
    batch_norm_shard_backward(stream_,
                              shards(),
                              {x.in,
                               with_residual ? want.out : Tensor(),
                               grad,
                               want.stats,
                               x.weight,
                               x.bias,
                               params,
                               &gated,
                               grad_weight,
                               grad_bias},
                              {},
                              grad);
    EXPECT_TRUE(same_bits(download(grad), download(want.grad_in)));
  }
}

// Two gradients are one, as the op that adds them would round it.
TEST_P(CudaBatchNormShard, AddsWhatAnotherConsumerSent) {
  const BatchNormInputs x = on_device(inputs(true));
  const BatchNormParams params{.activation = Activation::kRelu};
  const ShardStep forward = step(x, params);
  const Tensor other = upload(rounded_to(dtype(), random_tensor(shape(), 9)));
  const auto backward = [&](Tensor grad, const Tensor& addend) {
    ShardStep got = forward;
    got.grad_weight = poisoned({3, x.channels()}, Dtype::kF32);
    got.grad_bias = poisoned({3, x.channels()}, Dtype::kF32);
    got.grad_in = poisoned(shape(), dtype());
    got.grad_residual = grad;
    batch_norm_shard_backward(stream_,
                              shards(),
                              {x.in,
                               forward.out,
                               grad,
                               forward.stats,
                               x.weight,
                               x.bias,
                               params,
                               &got.grad_residual,
                               got.grad_weight,
                               got.grad_bias},
                              addend,
                              got.grad_in);
    return got;
  };
  Tensor sum = upload(download(x.grad_out));
  add(stream_, other, sum);
  const ShardStep want = backward(sum, {});
  const ShardStep got = backward(upload(download(x.grad_out)), other);
  EXPECT_TRUE(same_bits(download(got.grad_residual), download(want.grad_residual)));
  EXPECT_TRUE(same_bits(download(got.grad_weight), download(want.grad_weight)));
  EXPECT_TRUE(same_bits(download(got.grad_bias), download(want.grad_bias)));
  EXPECT_TRUE(same_bits(download(got.grad_in), download(want.grad_in)));
}

// Tiles with and without a rest; packs of one.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaBatchNormShard,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{4, 3},
                                                              Shape{4, 1, 9, 9},
                                                              Shape{3, 24, 5, 7},
                                                              Shape{2, 72, 5, 7})));

// More slices than rows that join them.
class CudaBatchNormLongShard : public CudaBatchNormShard {};

TEST_P(CudaBatchNormLongShard, MatchesReference) {
  expect_reference(true, Activation::kRelu);
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaBatchNormLongShard,
                         ::testing::Combine(::testing::Values(Dtype::kF32),
                                            ::testing::Values(Shape{1, 33, 31, 32},
                                                              Shape{1, 64, 33, 35})));

class CudaBatchNormNoImages : public testing::CudaTest {};

TEST_F(CudaBatchNormNoImages, HaveStatisticsAndGradientsOfZero) {
  const Shards shards{.offsets = {0, 0, 0}, .total = 2, .groups = 2};
  Tensor empty = poisoned({0, 3, 4, 4}, Dtype::kF16);
  const Tensor weight = upload(random_tensor({3}, 2));
  Tensor stats = poisoned({2, 7}, Dtype::kF32);
  batch_norm_shard_forward(
      stream_, shards, {empty, {}, weight, weight, {}, nullptr, stats}, {}, empty);
  EXPECT_EQ(values_of(download(stats)), std::vector<double>(14));
  Tensor grad_weight = poisoned({2, 3}, Dtype::kF32), grad_bias = poisoned({2, 3}, Dtype::kF32);
  batch_norm_shard_backward(
      stream_,
      shards,
      {empty, {}, empty, stats, weight, weight, {}, nullptr, grad_weight, grad_bias},
      {},
      empty);
  EXPECT_EQ(values_of(download(grad_weight)), std::vector<double>(6));
  EXPECT_EQ(values_of(download(grad_bias)), std::vector<double>(6));
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_shard_test
