// Batch norm in one training step on one rank, built from the ops of kernels/norm/batch_norm.h.
// Runs on any device.
#pragma once

#include <vector>

#include "core/transfer.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/reduce/tree_sum.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing {

struct BatchNormBodies {
  kernels::BatchNormShardStats* shard_stats;
  kernels::BatchNormMergeStats* merge_stats;
  kernels::BatchNormForward* forward;
  kernels::BatchNormShardSums* shard_sums;
  kernels::BatchNormBackward* backward;
};

#define LS_BATCH_NORM_BODIES(scope)                                                          \
  ::lockstep::testing::BatchNormBodies {                                                     \
    scope::batch_norm_shard_stats, scope::batch_norm_merge_stats, scope::batch_norm_forward, \
        scope::batch_norm_shard_sums, scope::batch_norm_backward                             \
  }

inline std::vector<kernels::Activation> activations_with(bool residual) {
  using enum kernels::Activation;
  if (residual) return {kNone, kRelu};
  return {kNone, kRelu, kGelu};
}
inline const char* name_of(kernels::Activation activation) {
  constexpr const char* kNames[] = {"plain", "ReLU", "GELU"};
  return kNames[static_cast<size_t>(activation)];
}

struct BatchNormInputs {
  explicit BatchNormInputs(const Shape& shape, bool with_residual = false)
      : in(random_tensor(shape, 1, -1, 2)),
        grad_out(random_tensor(shape, 2)),
        weight(random_tensor({shape[1]}, 3)),
        bias(random_tensor({shape[1]}, 4)),
        residual(with_residual ? random_tensor(shape, 5) : Tensor()) {}

  int64_t channels() const { return in.shape()[1]; }
  int64_t pixels() const { return in.shape().rank() == 4 ? in.shape()[2] * in.shape()[3] : 1; }

  Tensor in, grad_out, weight, bias;
  Tensor residual;  // undefined, or shaped like in
};

struct BatchNormStep {
  Tensor leaves;  // (shards, 2C+1)
  Tensor stats;   // (groups, 2C+1)
  Tensor out;
  Tensor grad_weight_leaves, grad_bias_leaves;  // (shards, C)
  Tensor grad_weight, grad_bias;                // (groups, C)
  Tensor grad_in;
  Tensor grad_residual = {};  // defined only if ReLU follows a residual, or if GELU follows
};

// Requires: all shards are on this rank; inputs are on the stream's device.
inline BatchNormStep batch_norm_step(Stream& stream,
                                     const Shards& shards,
                                     const BatchNormInputs& x,
                                     const kernels::BatchNormParams& params,
                                     const BatchNormBodies& ops) {
  const int64_t channels = x.channels();
  const auto f32 = [&](const Shape& shape) {
    return to_device(stream, poisoned_tensor(shape, Dtype::kF32));
  };
  const auto like_in = [&] {
    return to_device(stream, poisoned_tensor(x.in.shape(), x.in.dtype()));
  };
  BatchNormStep step{.leaves = f32({shards.total, 2 * channels + 1}),
                     .stats = f32({shards.groups, 2 * channels + 1}),
                     .out = like_in(),
                     .grad_weight_leaves = f32({shards.total, channels}),
                     .grad_bias_leaves = f32({shards.total, channels}),
                     .grad_weight = f32({shards.groups, channels}),
                     .grad_bias = f32({shards.groups, channels}),
                     .grad_in = like_in()};
  const auto each_group = [&](auto&& merge, const Tensor& leaves, const Tensor& merged) {
    for (int64_t g = 0; g < shards.groups; ++g) {
      Tensor row = merged.slice(g, 1).view({merged.shape()[1]});
      merge(leaves.slice(g * shards.per_group(), shards.per_group()), row);
    }
  };
  const auto merge_stats = [&](const Tensor& leaves, Tensor& row) {
    ops.merge_stats(stream, leaves, x.pixels(), row);
  };
  const auto sum = [&](const Tensor& leaves, Tensor& row) {
    kernels::tree_sum(stream, leaves, row);
  };
  ops.shard_stats(stream, shards, x.in, step.leaves);
  each_group(merge_stats, step.leaves, step.stats);
  ops.forward(stream, shards, {x.in, step.stats, x.weight, x.bias, x.residual, params, step.out});
  const bool gated = x.residual.defined() && params.activation == kernels::Activation::kRelu;
  const bool writes = gated || params.activation == kernels::Activation::kGelu;
  if (writes) step.grad_residual = like_in();
  ops.shard_sums(stream,
                 shards,
                 {x.in,
                  gated ? step.out : Tensor(),
                  x.grad_out,
                  step.stats,
                  x.weight,
                  x.bias,
                  params,
                  &step.grad_residual,
                  step.grad_weight_leaves,
                  step.grad_bias_leaves});
  each_group(sum, step.grad_weight_leaves, step.grad_weight);
  each_group(sum, step.grad_bias_leaves, step.grad_bias);
  ops.backward(
      stream,
      shards,
      {x.in,
       writes ? step.grad_residual : x.grad_out,
       step.stats,
       step.grad_weight,
       step.grad_bias,
       x.weight,
       x.bias,
       {.eps = params.eps, .activation = writes ? kernels::Activation::kNone : params.activation},
       step.grad_in});
  return step;
}

}  // namespace lockstep::testing
