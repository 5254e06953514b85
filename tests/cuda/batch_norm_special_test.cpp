#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/norm/batch_norm.h"
#include "tests/reference/batch_norm.h"
#include "tests/support/batch_norm_step.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"

namespace lockstep::kernels::batch_norm_special_test {
namespace {

using testing::batch_norm_step;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::close;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
const testing::BatchNormBodies kOps = LS_BATCH_NORM_BODIES(kernels);

class CudaBatchNormSpecial : public testing::CudaTest {
 protected:
  // The leaf of one shard.
  Tensor stats_of(const Tensor& in) {
    Tensor stats = poisoned({1, 2 * in.shape()[1] + 1}, Dtype::kF32);
    batch_norm_shard_stats(stream_, Shards::single(in.shape()[0]), upload(in), stats);
    return download(stats);
  }
  void expect_moments(const Tensor& in, double rel) {
    const Tensor leaf = stats_of(in);
    const auto channels = static_cast<size_t>(in.shape()[1]);
    const auto want = reference::batch_norm_moments(values_of(in), channels);
    const double deviation = std::sqrt(*std::ranges::max_element(want.m2) / want.count);
    EXPECT_TRUE(close(leaf.span<const float>().first(channels),
                      want.mean,
                      {.rel = 3e-7, .abs = 1e-6 * deviation}));
    EXPECT_TRUE(close(leaf.span<const float>().subspan(channels, channels), want.m2, {.rel = rel}));
    EXPECT_EQ(leaf.data<float>()[2 * channels], static_cast<float>(in.shape()[0]));
  }
};

// Values a channel about `mean`; the first and the last of all may lie elsewhere.
Tensor spread_about(double mean, double deviation, double outlier, Dtype dtype) {
  const Shape shape{3, 8, 9, 9};
  std::vector<double> values = values_of(random_tensor(shape, 7));
  for (double& value : values) value = mean + deviation * value;
  for (size_t c = 0; c < 8; ++c) values[c] = values[values.size() - 8 + c] = outlier;
  return tensor_of(values, shape, dtype);
}

TEST_F(CudaBatchNormSpecial, MeanFarAboveDeviation) {
  expect_moments(spread_about(1000, 0.01, 1000, Dtype::kF32), 2e-6);
  expect_moments(spread_about(-1e6, 1, -1e6, Dtype::kF32), 2e-6);
  expect_moments(spread_about(1000, 2, 1000, Dtype::kF16), 2e-6);
  expect_moments(spread_about(100, 2, 100, Dtype::kBF16), 2e-6);
}

TEST_F(CudaBatchNormSpecial, OutliersComeFirstAndLast) {
  expect_moments(spread_about(0, 0.01, 1000, Dtype::kF32), 2e-6);
  expect_moments(spread_about(1000, 0.01, -1000, Dtype::kF32), 2e-6);
  expect_moments(spread_about(0, 0.01, 1000, Dtype::kF16), 2e-6);
}

TEST_F(CudaBatchNormSpecial, AConstantChannelHasNoDeviation) {
  for (const Dtype dtype : kFloatTypes) {
    const Shape shape{5, 3, 7, 7};
    std::vector<double> values(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 0.5 : i % 3 == 1 ? -3 : 0;
    const Tensor leaf = stats_of(tensor_of(values, shape, dtype));
    EXPECT_TRUE(same_bits(leaf, tensor_of({{0.5, -3, 0, 0, 0, 0, 5}}, {1, 7}, Dtype::kF32)));
  }
}

// Squares that vanish while the square of their sum does not.
TEST_F(CudaBatchNormSpecial, DeviationsAreNeverNegative) {
  std::vector<double> values(1024, 1.6e-23);
  for (size_t i = 0; i < 256; ++i) values[i] = 0;
  const Tensor leaf = stats_of(tensor_of(values, {1, 1, 32, 32}, Dtype::kF32));
  EXPECT_GE(leaf.data<float>()[1], 0);
}

// 187,489 pixels: as many slices as there can be, threads with four and with five pixels.
TEST_F(CudaBatchNormSpecial, ALongShard) {
  const Shape shape{1, 3, 433, 433};
  BatchNormInputs x(shape);
  const auto want = reference::batch_norm_moments(values_of(x.in), 3);
  const Tensor leaf = stats_of(x.in);
  EXPECT_TRUE(close(leaf.span<const float>().first(3), want.mean, {.rel = 1e-6, .abs = 3e-7}));
  EXPECT_TRUE(close(leaf.span<const float>().subspan(3, 3), want.m2, {.rel = 2e-6}));
}

// 66 slices: more than the second stage has rows.
TEST_F(CudaBatchNormSpecial, LongSums) {
  const Shape shape{1, 3, 211, 211};
  const BatchNormInputs x(shape);
  const Tensor stats =
      tensor_of({{0.25, -0.5, 0, 2 * 44521, 44521, 44521, 1}}, {1, 7}, Dtype::kF32);
  const auto in = values_of(x.in);
  const auto grad_out = values_of(x.grad_out);
  std::vector<double> want_bias(3);
  std::vector<double> want_weight(3);
  const double mean[] = {0.25, -0.5, 0};
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t c = i % 3;
    want_bias[c] += grad_out[i];
    want_weight[c] += grad_out[i] * (in[i] - mean[c]) / std::sqrt(c == 0 ? 2 : 1);
  }
  Tensor grad_weight = poisoned({1, 3}, Dtype::kF32);
  Tensor grad_bias = poisoned({1, 3}, Dtype::kF32);
  batch_norm_shard_sums(stream_,
                        Shards::single(1),
                        {upload(x.in),
                         {},
                         upload(x.grad_out),
                         upload(stats),
                         upload(x.weight),
                         upload(x.bias),
                         {.eps = 0},
                         nullptr,
                         grad_weight,
                         grad_bias});
  const auto tolerance = testing::f32_sum(44521);
  EXPECT_TRUE(close(download(grad_bias).span<const float>(), want_bias, tolerance));
  EXPECT_TRUE(close(download(grad_weight).span<const float>(), want_weight, tolerance));
}

TEST_F(CudaBatchNormSpecial, OneValueAChannel) {
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = tensor_of({{1.5, -2, 0, 8, 0.25, -1, 3, 100}}, {1, 8}, dtype);
    std::vector<double> want = values_of(in);
    want.resize(16);
    want.push_back(1);
    EXPECT_TRUE(same_bits(stats_of(in), tensor_of(want, {1, 17}, Dtype::kF32)));
  }
}

TEST_F(CudaBatchNormSpecial, NanStaysInItsChannelAndPassesRelu) {
  for (const Dtype dtype : kFloatTypes) {
    for (const float bad : {kNan, kInf}) {
      const Shards shards = Shards::cut(2, 2, 1);
      BatchNormInputs x({2, 8, 5, 5});
      x.in = testing::rounded_to(dtype, x.in);
      x.grad_out = testing::rounded_to(dtype, x.grad_out);
      const auto step = [&] {
        BatchNormInputs device = x;
        for (Tensor* t : {&device.in, &device.grad_out, &device.weight, &device.bias}) {
          *t = upload(*t);
        }
        return batch_norm_step(stream_, shards, device, {.activation = Activation::kRelu}, kOps);
      };
      const BatchNormStep clean = step();
      testing::set(x.in, 2 + 8 * 7, bad);
      const BatchNormStep got = step();
      const auto out = values_of(download(got.out));
      const auto clean_out = values_of(download(clean.out));
      const auto grad_in = values_of(download(got.grad_in));
      const auto clean_grad_in = values_of(download(clean.grad_in));
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) {
        if (i % 8 == 2) {
          EXPECT_TRUE(std::isnan(out[i]));
          EXPECT_TRUE(std::isnan(grad_in[i]));
          sum += testing::get(x.grad_out, static_cast<int64_t>(i));
        } else {
          EXPECT_EQ(out[i], clean_out[i]);
          EXPECT_EQ(grad_in[i], clean_grad_in[i]);
        }
      }
      EXPECT_NEAR(download(got.grad_bias).data<float>()[2], sum, 1e-5)
          << "the gate must let every gradient through";
    }
  }
}

// weight = bias = 0: every value is 0, the gate is shut.
TEST_F(CudaBatchNormSpecial, ReluShutsAtZero) {
  for (const bool with_residual : {false, true}) {
    BatchNormInputs x({4, 3, 3, 3}, with_residual);
    for (Tensor* tensor : {&x.weight, &x.bias, &x.residual}) {
      if (tensor->defined()) std::ranges::fill(tensor->span<float>(), 0.0F);
    }
    for (Tensor* tensor : {&x.in, &x.grad_out, &x.weight, &x.bias, &x.residual}) {
      if (tensor->defined()) *tensor = upload(*tensor);
    }
    const BatchNormStep step =
        batch_norm_step(stream_, Shards::single(4), x, {.activation = Activation::kRelu}, kOps);
    const std::vector<double> zeros(3 * 4 * 9);
    EXPECT_TRUE(same_bits(download(step.out), tensor_of(zeros, {4, 3, 3, 3}, Dtype::kF32)));
    EXPECT_EQ(values_of(download(step.grad_bias)), std::vector<double>(3));
    EXPECT_EQ(values_of(download(step.grad_weight)), std::vector<double>(3));
    if (!with_residual) continue;
    EXPECT_EQ(values_of(download(step.grad_residual)), zeros);
  }
}

TEST_F(CudaBatchNormSpecial, NoImages) {
  const Shards shards{.offsets = {0, 0, 0}, .total = 2};
  const Tensor empty = poisoned({0, 3, 4, 4}, Dtype::kF16);
  Tensor leaves = poisoned({2, 7}, Dtype::kF32);
  batch_norm_shard_stats(stream_, shards, empty, leaves);
  EXPECT_EQ(values_of(download(leaves)), std::vector<double>(14));
  Tensor grad_weight = poisoned({2, 3}, Dtype::kF32);
  Tensor grad_bias = poisoned({2, 3}, Dtype::kF32);
  const Tensor stats = upload(random_tensor({1, 7}, 1));
  const Tensor weight = upload(random_tensor({3}, 2));
  batch_norm_shard_sums(
      stream_,
      shards,
      {empty, {}, empty, stats, weight, weight, {}, nullptr, grad_weight, grad_bias});
  EXPECT_EQ(values_of(download(grad_weight)), std::vector<double>(6));
  EXPECT_EQ(values_of(download(grad_bias)), std::vector<double>(6));
  Tensor out = empty;
  batch_norm_forward(stream_, shards, {empty, stats, weight, weight, {}, {}, out});
  stream_.synchronize();
}

TEST_F(CudaBatchNormSpecial, MergedStatsHaveTheCpusBits) {
  Stream cpu;
  for (const int64_t channels : {1, 3, 33, 100}) {
    for (const int64_t count : {1, 2, 3, 5, 8, 17, 40}) {
      const Tensor leaves = random_tensor({count, 2 * channels + 1}, 3, 0, 2);
      for (int64_t k = 0; k < count; ++k) {  // some are empty
        const auto row = leaves.slice(k, 1);
        auto values = Tensor(row).span<float>();
        values.back() = static_cast<float>(k * 5 % 4);
        if (values.back() == 0) std::ranges::fill(values, 0.0F);
      }
      Tensor want = poisoned_tensor({2 * channels + 1}, Dtype::kF32);
      batch_norm_merge_stats(cpu, leaves, 49, want);
      Tensor got = poisoned({2 * channels + 1}, Dtype::kF32);
      batch_norm_merge_stats(stream_, upload(leaves), 49, got);
      EXPECT_TRUE(same_bits(download(got), want)) << channels << " channels, " << count;
    }
  }
}

TEST_F(CudaBatchNormSpecial, RunningStatsHaveTheCpusBits) {
  Stream cpu;
  for (const int64_t channels : {1, 300}) {
    Tensor stats = random_tensor({2 * channels + 1}, 1, 0, 3);
    stats.data<float>()[2 * channels] = 5;
    Tensor mean = random_tensor({channels}, 2);
    Tensor var = random_tensor({channels}, 3, 0.5F, 2);
    Tensor device_mean = upload(mean);
    Tensor device_var = upload(var);
    batch_norm_update_running(cpu, stats, 9, 0.1F, mean, var);
    batch_norm_update_running(stream_, upload(stats), 9, 0.1F, device_mean, device_var);
    EXPECT_TRUE(same_bits(download(device_mean), mean));
    EXPECT_TRUE(same_bits(download(device_var), var));
  }
}

TEST_F(CudaBatchNormSpecial, OneValueHasNoVariance) {
  for (const double images : {0.0, 1.0}) {
    const Tensor stats = upload(tensor_of({{4, 0, images}}, {3}, Dtype::kF32));
    Tensor mean = upload(random_tensor({1}, 2));
    Tensor var = upload(random_tensor({1}, 3));
    batch_norm_update_running(stream_, stats, 1, 0.1F, mean, var);
    EXPECT_TRUE(std::isnan(download(var).data<float>()[0]));
  }
}

TEST_F(CudaBatchNormSpecial, ActivationsAreOfOneDtype) {
  const Tensor in = poisoned({2, 3}, Dtype::kF16);
  const Tensor stats = poisoned({1, 7}, Dtype::kF32);
  const Tensor weight = poisoned({3}, Dtype::kF32);
  Tensor out = poisoned({2, 3}, Dtype::kF32);
  const Shards shards = Shards::single(2);
  EXPECT_THROW(batch_norm_forward(stream_, shards, {in, stats, weight, weight, {}, {}, out}),
               DtypeError);
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_special_test
