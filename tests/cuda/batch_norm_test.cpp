#include "kernels/batch_norm.h"

#include <tuple>

#include "tests/reference/batch_norm.h"
#include "tests/support/batch_norm_step.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"

namespace lockstep::kernels {
namespace {

using testing::batch_norm_step;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::close;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::Tolerance;
using testing::values_of;

const testing::BatchNormBodies kOps = LS_BATCH_NORM_BODIES(kernels);

Tensor as_f32(const Tensor& tensor) {
  return rounded_to(Dtype::kF32, tensor);
}

class CudaBatchNorm : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {
 protected:
  Dtype dtype() const { return std::get<0>(GetParam()); }
  const Shape& shape() const { return std::get<1>(GetParam()); }

  // On the CPU, f32, with activations that are values of dtype().
  BatchNormInputs inputs(bool with_residual) const {
    BatchNormInputs x(shape(), with_residual);
    const auto round = [&](Tensor& tensor) { tensor = as_f32(rounded_to(dtype(), tensor)); };
    round(x.in);
    round(x.grad_out);
    if (with_residual) round(x.residual);
    return x;
  }
  Tensor activation(const Tensor& values, bool aligned = true) {
    if (!values.defined()) return {};
    const Tensor rounded = rounded_to(dtype(), values);
    return aligned ? upload(rounded) : upload_misaligned(rounded);
  }
  BatchNormInputs on_device(BatchNormInputs x, bool aligned = true) {
    for (Tensor* tensor : {&x.in, &x.grad_out, &x.residual}) *tensor = activation(*tensor, aligned);
    x.weight = upload(x.weight);
    x.bias = upload(x.bias);
    return x;
  }
  BatchNormStep on_cpu(BatchNormStep step) {
    for (Tensor* tensor : {&step.leaves,
                           &step.stats,
                           &step.out,
                           &step.grad_weight_leaves,
                           &step.grad_bias_leaves,
                           &step.grad_weight,
                           &step.grad_bias,
                           &step.grad_in,
                           &step.grad_residual}) {
      if (tensor->defined()) *tensor = download(*tensor);
    }
    return step;
  }

  // An element of dtype() that should be `want`, when f32 arithmetic went before.
  Tolerance element() const {
    const double rounding = dtype() == Dtype::kF16 ? 0x1p-11 : dtype() == Dtype::kBF16 ? 0x1p-8 : 0;
    return {.rel = 2e-6 + rounding, .abs = 4e-6};
  }
  void expect_group_matches_reference(const BatchNormInputs& x,
                                      const BatchNormStep& got,
                                      const BatchNormParams& params,
                                      int64_t groups,
                                      int64_t group) const;
};

void CudaBatchNorm::expect_group_matches_reference(const BatchNormInputs& x,
                                                   const BatchNormStep& got,
                                                   const BatchNormParams& params,
                                                   int64_t groups,
                                                   int64_t group) const {
  const int64_t images = shape()[0] / groups;
  const auto part = [&](const Tensor& batch) {
    return batch.defined() ? values_of(batch.slice(group * images, images)) : std::vector<double>();
  };
  const auto near = [&](const Tensor& batch, const std::vector<double>& want, Tolerance tolerance) {
    const Tensor floats = as_f32(batch.slice(group * images, images));
    return close(floats.span<const float>(), want, tolerance);
  };
  const auto row = [&](const Tensor& rows) {
    return rows.slice(group, 1).span<const float>().first(static_cast<size_t>(rows.shape()[1]));
  };
  const auto channels = static_cast<size_t>(x.channels());
  const auto weight = values_of(x.weight);
  const auto bias = values_of(x.bias);
  const auto moments = reference::batch_norm_moments(part(x.in), channels);
  const auto out = reference::batch_norm_forward(
      part(x.in), weight, bias, params.eps, params.relu, part(x.residual));
  const auto grads = reference::batch_norm_backward(
      part(x.in), part(x.grad_out), weight, bias, params.eps, params.relu, part(x.residual));
  const Tolerance sum = testing::f32_sum(images * x.pixels());
  EXPECT_TRUE(close(row(got.stats).first(channels), moments.mean, {.rel = 1e-6, .abs = 3e-7}));
  EXPECT_TRUE(close(row(got.stats).subspan(channels, channels), moments.m2, {2e-6, 1e-12}));
  EXPECT_EQ(row(got.stats).back(), static_cast<float>(images));
  EXPECT_TRUE(near(got.out, out, element()));
  EXPECT_TRUE(close(row(got.grad_bias), grads.bias, sum));
  EXPECT_TRUE(close(row(got.grad_weight), grads.weight, sum));
  EXPECT_TRUE(near(got.grad_in, grads.in, element()));
  if (!got.grad_residual.defined()) return;
  EXPECT_TRUE(near(got.grad_residual, grads.residual, {}));
}

void expect_same_bits(const BatchNormStep& got, const BatchNormStep& want) {
  EXPECT_TRUE(same_bits(got.leaves, want.leaves));
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.grad_weight_leaves, want.grad_weight_leaves));
  EXPECT_TRUE(same_bits(got.grad_bias_leaves, want.grad_bias_leaves));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
  EXPECT_TRUE(same_bits(got.grad_residual, want.grad_residual));
}

TEST_P(CudaBatchNorm, MatchesReference) {
  for (const auto& [with_residual, relu] : {std::pair{false, false}, {false, true}, {true, true}}) {
    SCOPED_TRACE(fmt::format("residual {}, relu {}", with_residual, relu));
    const BatchNormInputs x = inputs(with_residual);
    const BatchNormParams params{.eps = 1e-3F, .relu = relu};
    const int64_t groups = relu && shape()[0] % 2 == 0 ? 2 : 1;
    const Shards shards = Shards::cut(shape()[0], 4, groups);  // some are empty
    const BatchNormStep got = on_cpu(batch_norm_step(stream_, shards, on_device(x), params, kOps));
    for (int64_t g = 0; g < groups; ++g) expect_group_matches_reference(x, got, params, groups, g);
  }
}

// Where the order per element is fixed, the CPU op's bits, rounded.
TEST_P(CudaBatchNorm, ElementsHaveTheCpusBits) {
  const int64_t groups = shape()[0] % 2 == 0 ? 2 : 1;
  const Shards shards = Shards::cut(shape()[0], 4, groups);
  for (const bool with_residual : {false, true}) {
    const BatchNormInputs x = inputs(with_residual);
    const BatchNormInputs device = on_device(x);
    const BatchNormParams params{.eps = 1e-3F, .relu = true};
    Stream cpu;
    const BatchNormStep want = batch_norm_step(cpu, shards, x, params, kOps);
    const Tensor stats = upload(want.stats);
    Tensor out = poisoned(shape(), dtype());
    batch_norm_forward(stream_,
                       shards,
                       device.in,
                       stats,
                       device.weight,
                       device.bias,
                       device.residual,
                       params,
                       out);
    EXPECT_TRUE(same_bits(download(out), rounded_to(dtype(), want.out)));
    if (with_residual) continue;
    Tensor grad_in = poisoned(shape(), dtype());
    batch_norm_backward(stream_,
                        shards,
                        device.in,
                        device.grad_out,
                        stats,
                        upload(want.grad_weight),
                        upload(want.grad_bias),
                        device.weight,
                        device.bias,
                        params,
                        grad_in);
    EXPECT_TRUE(same_bits(download(grad_in), rounded_to(dtype(), want.grad_in)));
  }
}

TEST_P(CudaBatchNorm, InferenceHasTheCpusBits) {
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  const Tensor mean = random_tensor({shape()[1]}, 5);
  const Tensor var = random_tensor({shape()[1]}, 6, 0.5F, 2);
  for (const bool with_residual : {false, true}) {
    const BatchNormInputs x = inputs(with_residual);
    const BatchNormInputs device = on_device(x);
    const BatchNormParams params{.relu = !with_residual};
    Stream cpu;
    Tensor want = poisoned_tensor(shape(), Dtype::kF32);
    batch_norm_inference(cpu, shards, x.in, mean, var, x.weight, x.bias, x.residual, params, want);
    Tensor got = poisoned(shape(), dtype());
    batch_norm_inference(stream_,
                         shards,
                         device.in,
                         upload(mean),
                         upload(var),
                         device.weight,
                         device.bias,
                         device.residual,
                         params,
                         got);
    EXPECT_TRUE(same_bits(download(got), rounded_to(dtype(), want)));
  }
}

TEST_P(CudaBatchNorm, AlignmentDoesNotChangeABit) {
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  const BatchNormInputs x = inputs(shape()[0] % 2 == 0);
  const auto run = [&](bool aligned) {
    const BatchNormInputs device = on_device(x, aligned);
    return on_cpu(batch_norm_step(stream_, shards, device, {.relu = true}, kOps));
  };
  expect_same_bits(run(false), run(true));
}

// What a rank computes that owns one shard only, with its group's results.
TEST_P(CudaBatchNorm, ShardByShardIsTheSameBits) {
  const BatchNormParams params{.relu = true};
  const BatchNormInputs x = on_device(inputs(true));
  const int64_t groups = shape()[0] % 2 == 0 ? 2 : 1;
  const Shards all = Shards::cut(shape()[0], 4, groups);
  const BatchNormStep want = batch_norm_step(stream_, all, x, params, kOps);
  for (int64_t k = 0; k < all.local(); ++k) {
    const int64_t images = all.count(k);
    const Shards one{.offsets = {0, images}, .total = 4, .first = k, .groups = groups};
    const auto part = [&](const Tensor& batch) { return batch.slice(all.begin(k), images); };
    const auto group = [&](const Tensor& rows) { return rows.slice(all.group(k), 1); };
    const auto expect_part = [&](const Tensor& got, const Tensor& rows, int64_t first) {
      EXPECT_TRUE(same_bits(download(got), download(rows).slice(first, got.shape()[0])));
    };
    Tensor leaf = poisoned({1, want.leaves.shape()[1]}, Dtype::kF32);
    Tensor out = poisoned(part(x.in).shape(), dtype());
    Tensor grad_weight = poisoned({1, x.channels()}, Dtype::kF32);
    Tensor grad_bias = poisoned({1, x.channels()}, Dtype::kF32);
    Tensor grad = part(x.grad_out);  // becomes grad_residual, then grad_in
    const Tensor in = part(x.in);
    const Tensor stats = group(want.stats);
    batch_norm_shard_stats(stream_, one, in, leaf);
    batch_norm_forward(stream_, one, in, stats, x.weight, x.bias, part(x.residual), params, out);
    batch_norm_shard_sums(
        stream_, one, in, out, grad, stats, x.weight, x.bias, params, grad, grad_weight, grad_bias);
    expect_part(leaf, want.leaves, k);
    expect_part(out, want.out, all.begin(k));
    expect_part(grad_weight, want.grad_weight_leaves, k);
    expect_part(grad_bias, want.grad_bias_leaves, k);
    expect_part(grad, want.grad_residual, all.begin(k));
    batch_norm_backward(stream_,
                        one,
                        in,
                        grad,
                        stats,
                        group(want.grad_weight),
                        group(want.grad_bias),
                        x.weight,
                        x.bias,
                        {},
                        grad);
    expect_part(grad, want.grad_in, all.begin(k));
  }
}

// One value to several slices; packs of 4 and 8 channels and of one; tiles with and without a rest.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaBatchNorm,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{2, 3},
                                                              Shape{5, 16},
                                                              Shape{1, 3, 1, 2},
                                                              Shape{4, 1, 9, 9},
                                                              Shape{2, 5, 3, 2},
                                                              Shape{3, 8, 12, 11},
                                                              Shape{4, 24, 5, 7},
                                                              Shape{2, 33, 9, 9},
                                                              Shape{3, 64, 5, 7},
                                                              Shape{1, 264, 3, 5})));

}  // namespace
}  // namespace lockstep::kernels
