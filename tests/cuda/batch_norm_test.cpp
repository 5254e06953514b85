#include "kernels/norm/batch_norm.h"

#include <fmt/core.h>

#include "tests/support/cuda_batch_norm.h"

namespace lockstep::kernels::batch_norm_test {
namespace {

using testing::batch_norm_step;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

const testing::BatchNormBodies kOps = LS_BATCH_NORM_BODIES(kernels);

// A residual or none, and what follows.
constexpr std::pair<bool, Activation> kCases[] = {{false, Activation::kNone},
                                                  {false, Activation::kRelu},
                                                  {false, Activation::kGelu},
                                                  {true, Activation::kRelu}};

class CudaBatchNorm : public testing::CudaBatchNormTest {};

void expect_same_bits(const BatchNormStep& got, const BatchNormStep& want) {
  EXPECT_TRUE(same_bits(got.leaves, want.leaves));
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.grad_weight_leaves, want.grad_weight_leaves));
  EXPECT_TRUE(same_bits(got.grad_bias_leaves, want.grad_bias_leaves));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
  EXPECT_TRUE(same_bits(got.grad_residual, want.grad_residual));
}

TEST_P(CudaBatchNorm, MatchesReference) {
  for (const auto& [with_residual, activation] : kCases) {
    SCOPED_TRACE(fmt::format("residual {}, {}", with_residual, testing::name_of(activation)));
    const BatchNormInputs x = inputs(with_residual);
    const BatchNormParams params{.eps = 1e-3F, .activation = activation};
    const int64_t groups = activation != Activation::kNone && shape()[0] % 2 == 0 ? 2 : 1;
    const Shards shards = Shards::cut(shape()[0], 4, groups);  // some are empty
    const BatchNormStep got = on_cpu(batch_norm_step(stream_, shards, on_device(x), params, kOps));
    const int64_t images = shape()[0] / groups;
    for (int64_t g = 0; g < groups; ++g) {
      expect_group_matches_reference(x, got, params, g * images, images, g);
    }
  }
}

// Where the order per element is fixed, the CPU op's bits, rounded.
TEST_P(CudaBatchNorm, ElementsHaveTheCpusBits) {
  const int64_t groups = shape()[0] % 2 == 0 ? 2 : 1;
  const Shards shards = Shards::cut(shape()[0], 4, groups);
  for (const auto& [with_residual, activation] : kCases) {
    const BatchNormInputs x = inputs(with_residual);
    const BatchNormInputs device = on_device(x);
    const BatchNormParams params{.eps = 1e-3F, .activation = activation};
    Stream cpu;
    const BatchNormStep want = batch_norm_step(cpu, shards, x, params, kOps);
    const Tensor stats = upload(want.stats);
    Tensor out = poisoned(shape(), dtype());
    batch_norm_forward(
        stream_,
        shards,
        {device.in, stats, device.weight, device.bias, device.residual, params, out});
    EXPECT_TRUE(same_bits(download(out), rounded_to(dtype(), want.out)));
    if (with_residual) continue;
    if (activation == Activation::kGelu) {
      Tensor grad = poisoned(shape(), dtype());
      Tensor rows = poisoned({4, x.channels()}, Dtype::kF32);
      batch_norm_shard_sums(stream_,
                            shards,
                            {device.in,
                             {},
                             device.grad_out,
                             stats,
                             device.weight,
                             device.bias,
                             params,
                             &grad,
                             rows,
                             rows});
      EXPECT_TRUE(same_bits(download(grad), rounded_to(dtype(), want.grad_residual)));
      continue;
    }
    Tensor grad_in = poisoned(shape(), dtype());
    batch_norm_backward(stream_,
                        shards,
                        {device.in,
                         device.grad_out,
                         stats,
                         upload(want.grad_weight),
                         upload(want.grad_bias),
                         device.weight,
                         device.bias,
                         params,
                         grad_in});
    EXPECT_TRUE(same_bits(download(grad_in), rounded_to(dtype(), want.grad_in)));
  }
}

TEST_P(CudaBatchNorm, InferenceHasTheCpusBits) {
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  const Tensor mean = random_tensor({shape()[1]}, 5);
  const Tensor var = random_tensor({shape()[1]}, 6, 0.5F, 2);
  for (const auto& [with_residual, activation] : kCases) {
    const BatchNormInputs x = inputs(with_residual);
    const BatchNormInputs device = on_device(x);
    const BatchNormParams params{.activation = activation};
    Stream cpu;
    Tensor want = poisoned_tensor(shape(), Dtype::kF32);
    batch_norm_inference(
        cpu, shards, {x.in, mean, var, x.weight, x.bias, x.residual, params, want});
    Tensor got = poisoned(shape(), dtype());
    batch_norm_inference(stream_,
                         shards,
                         {device.in,
                          upload(mean),
                          upload(var),
                          device.weight,
                          device.bias,
                          device.residual,
                          params,
                          got});
    EXPECT_TRUE(same_bits(download(got), rounded_to(dtype(), want)));
  }
}

TEST_P(CudaBatchNorm, AlignmentDoesNotChangeABit) {
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  const BatchNormInputs x = inputs(shape()[0] % 2 == 0);
  const auto run = [&](bool aligned) {
    const BatchNormInputs device = on_device(x, aligned);
    return on_cpu(
        batch_norm_step(stream_, shards, device, {.activation = Activation::kRelu}, kOps));
  };
  expect_same_bits(run(false), run(true));
}

// What a rank computes that owns one shard only, with its group's results.
TEST_P(CudaBatchNorm, ShardByShardIsTheSameBits) {
  const BatchNormParams params{.activation = Activation::kRelu};
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
    batch_norm_forward(stream_, one, {in, stats, x.weight, x.bias, part(x.residual), params, out});
    batch_norm_shard_sums(
        stream_,
        one,
        {in, out, grad, stats, x.weight, x.bias, params, &grad, grad_weight, grad_bias});
    expect_part(leaf, want.leaves, k);
    expect_part(out, want.out, all.begin(k));
    expect_part(grad_weight, want.grad_weight_leaves, k);
    expect_part(grad_bias, want.grad_bias_leaves, k);
    expect_part(grad, want.grad_residual, all.begin(k));
    batch_norm_backward(stream_,
                        one,
                        {in,
                         grad,
                         stats,
                         group(want.grad_weight),
                         group(want.grad_bias),
                         x.weight,
                         x.bias,
                         {},
                         grad});
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
}  // namespace lockstep::kernels::batch_norm_test
