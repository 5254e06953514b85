// Batch normalization over (N,H,W), divided into steps between which the ranks of a group may
// exchange data.
//
// Forward, training:
//   1. batch_norm_shard_stats   each shard's (mean, M2, images) per channel
//   2. batch_norm_merge_stats   a group's shards merged in core/tree.h's order by Chan's formula
//   3. batch_norm_forward       out = (in - mean) * weight / sqrt(M2 / count + eps) + bias
//                               [+ residual], then the activation
//   4. batch_norm_update_running
// Backward:
//   5. batch_norm_shard_sums    each shard's sum of g (bias gradient) and of g * xhat (weight
//                               gradient); g = grad_out through the activation
//   6. tree_sum                 a group's sums
//   7. batch_norm_backward      grad_in = weight * invstd * (g - sum_g / count
//                                                            - xhat * sum_gx / count)
// Evaluation: batch_norm_inference.
//
// The structs of arguments hold references: make one for a call and do not keep it.
//
// If each group is one shard, batch_norm_shard_forward does steps 1 to 4 and
// batch_norm_shard_backward steps 5 to 7, on CUDA in two launches each; the forward pass takes one
// if a convolution gave the sums.
//
// ReLU's gate: steps 5 and 7 recompute it from in, so that out need not be kept. With a residual
// the gate is the sign of out, as stored; step 5 writes the gated gradient, which is the residual's
// gradient and step 7's grad_out.
// GELU takes no residual. Step 5 recomputes its slope from in and writes g, which is step 7's
// grad_out: computing the slope twice would take longer than writing and reading g.
//
// A statistics vector has 2C+1 floats: mean[C], M2[C] (sum of squared deviations), images;
// count = images * H * W. An empty shard gives zeros, which merging ignores.
// in is (N,C,H,W), or (N,C) with H = W = 1. in and all tensors that are "like in" have one dtype:
// f32, f16 or bf16. All other tensors are f32, and so is the arithmetic: a 16-bit result is rounded
// once, when stored.
// Source: torch.nn.functional.batch_norm; Chan, Golub, LeVeque 1979. Spec:
// tests/reference/batch_norm.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// The activation, applied last, in the same pass. kRelu: NaN stays NaN and lets the gradient
// through. kGelu: kernels/elementwise/gelu.h's kErf, bit for bit, of the normalized value before it
// is rounded.
enum class Activation : uint8_t { kNone, kRelu, kGelu };

struct BatchNormParams {
  float eps = 1e-5F;
  Activation activation = Activation::kNone;
};

// Running statistics of one layer, which training steps update in place.
struct BatchNormRunning {
  Tensor mean;  // (C)
  Tensor var;   // (C), unbiased
  float momentum = 0.1F;
};

// 1. Shapes: in (N,C,H,W) or (N,C); stats (local shards, 2C+1), overwritten. Robust where mean
// >> deviation. Errors: ShapeError, DtypeError, DeviceError.
using BatchNormShardStats = void(Stream& stream,
                                 const Shards& shards,
                                 const Tensor& in,
                                 Tensor& stats);
// 2. Shapes: leaves (M, 2C+1), M >= 1; merged (2C+1). pixels = H * W.
using BatchNormMergeStats = void(Stream& stream,
                                 const Tensor& leaves,
                                 int64_t pixels,
                                 Tensor& merged);
// 3.
struct BatchNormForwardArgs {
  const Tensor& in;
  const Tensor& group_stats;  // (local groups, 2C+1): row j is group shards.first_group() + j
  const Tensor& weight;       // (C)
  const Tensor& bias;         // (C)
  const Tensor& residual = no_tensor;  // like in; may be undefined, and must be with GELU
  BatchNormParams params = {};
  Tensor& out;  // like in, overwritten
};
using BatchNormForward = void(Stream& stream,
                              const Shards& shards,
                              const BatchNormForwardArgs& args);
// 4. running = (1 - momentum) * running + momentum * batch, the variance unbiased: M2 / (count -
// 1). Shapes: stats (2C+1); running_mean, running_var (C), in place. Errors: ShapeError unless
// count >= 2; on CUDA, where the host does not know the count, the variances become NaN instead.
using BatchNormUpdateRunning = void(Stream& stream,
                                    const Tensor& stats,
                                    int64_t pixels,
                                    float momentum,
                                    Tensor& running_mean,
                                    Tensor& running_var);
// 5.
struct BatchNormSumsArgs {
  const Tensor& in;
  const Tensor& out = no_tensor;  // of 3, if it added a residual and applied ReLU; else undefined
  const Tensor& grad_out;         // like in
  const Tensor& group_stats;      // as in 3
  const Tensor& weight;           // (C)
  const Tensor& bias;             // (C)
  BatchNormParams params = {};
  // Like in if out is defined or with GELU, else null or undefined. Overwritten with g: grad_out
  // where out is positive or NaN, and 0 elsewhere, or grad_out times GELU's slope. May be
  // grad_out's memory. The sums use g before it is rounded.
  Tensor* grad_residual = nullptr;
  Tensor& grad_weight;  // (local shards, C), overwritten
  Tensor& grad_bias;    // (local shards, C), overwritten
};
using BatchNormShardSums = void(Stream& stream,
                                const Shards& shards,
                                const BatchNormSumsArgs& args);
// 7.
struct BatchNormBackwardArgs {
  const Tensor& in;
  const Tensor& grad_out;           // like in; grad_residual, if 5 wrote it
  const Tensor& group_stats;        // as in 3
  const Tensor& group_grad_weight;  // (local groups, C): the whole groups' sums
  const Tensor& group_grad_bias;    // (local groups, C)
  const Tensor& weight;             // (C)
  const Tensor& bias;               // (C)
  BatchNormParams params = {};      // activation: kNone if 5 wrote grad_residual
  Tensor& grad_in;                  // like in, overwritten; may be grad_out's memory
};
using BatchNormBackward = void(Stream& stream,
                               const Shards& shards,
                               const BatchNormBackwardArgs& args);
// Arguments of steps 1 to 4 that concern the statistics, for groups of one shard.
struct BatchNormShardArgs {
  const Tensor& in;
  // Sums from kernels/conv/conv2d_fused.h, on CUDA. The statistics are computed from them instead
  // of by step 1, which loses digits if mean >> deviation. (2, local shards, C) f32; may be
  // undefined.
  const Tensor& sums = no_tensor;
  const Tensor& weight;  // (C)
  const Tensor& bias;    // (C)
  BatchNormParams params = {};
  BatchNormRunning* running = nullptr;  // follows this rank's first shard; may be null
  Tensor& stats;                        // (local shards, 2C+1), overwritten
};
// 1 to 4 where each group is one shard. Shapes: residual, out as in 3.
// Errors: ShapeError unless each group is one shard, and count >= 2 if there are running
// statistics.
using BatchNormShardForward = void(Stream& stream,
                                   const Shards& shards,
                                   const BatchNormShardArgs& args,
                                   const Tensor& residual,
                                   Tensor& out);
// Computes the factors of step 3 on CUDA without `out`, for callers that apply them: affine (2,
// local shards, C) of a float type, scales and then shifts, so that out = in * scale + shift up to
// rounding. args.in is not read. Requires: args.sums is defined. Errors: also ShapeError for GELU,
// since these callers apply only ReLU.
using BatchNormShardAffine = void(Stream& stream,
                                  const Shards& shards,
                                  const BatchNormShardArgs& args,
                                  Tensor& affine);
// 5 to 7 for groups of one shard. grad_in as in 7; if grad_in and grad_residual both are grad_out's
// memory, it holds grad_in in the end. addend: undefined, or, if grad_residual is grad_out's
// memory, like in: it is first added to grad_out, as by kernels/elementwise/add.h.
using BatchNormShardBackward = void(Stream& stream,
                                    const Shards& shards,
                                    const BatchNormSumsArgs& args,
                                    const Tensor& addend,
                                    Tensor& grad_in);
// Evaluation.
struct BatchNormInferenceArgs {
  const Tensor& in;
  const Tensor& running_mean;          // (C)
  const Tensor& running_var;           // (C)
  const Tensor& weight;                // (C)
  const Tensor& bias;                  // (C)
  const Tensor& residual = no_tensor;  // as in 3
  BatchNormParams params = {};
  Tensor& out;  // like in, overwritten
};
using BatchNormInference = void(Stream& stream,
                                const Shards& shards,
                                const BatchNormInferenceArgs& args);

// For groups of one shard: the arguments of step 3 after 1, and of 7 after 5.
inline BatchNormForwardArgs forward_args(const BatchNormShardArgs& shard,
                                         const Tensor& residual,
                                         Tensor& out) {
  return {.in = shard.in,
          .group_stats = shard.stats,
          .weight = shard.weight,
          .bias = shard.bias,
          .residual = residual,
          .params = shard.params,
          .out = out};
}
inline BatchNormBackwardArgs backward_args(const BatchNormSumsArgs& sums, Tensor& grad_in) {
  const bool gated = sums.grad_residual != nullptr && sums.grad_residual->defined();
  return {.in = sums.in,
          .grad_out = gated ? *sums.grad_residual : sums.grad_out,
          .group_stats = sums.group_stats,
          .group_grad_weight = sums.grad_weight,
          .group_grad_bias = sums.grad_bias,
          .weight = sums.weight,
          .bias = sums.bias,
          .params = {.eps = sums.params.eps,
                     .activation = gated ? Activation::kNone : sums.params.activation},
          .grad_in = grad_in};
}

LS_DECLARE_OP(BatchNormShardStats, batch_norm_shard_stats)
LS_DECLARE_OP(BatchNormMergeStats, batch_norm_merge_stats)
LS_DECLARE_OP(BatchNormForward, batch_norm_forward)
LS_DECLARE_OP(BatchNormUpdateRunning, batch_norm_update_running)
LS_DECLARE_OP(BatchNormShardSums, batch_norm_shard_sums)
LS_DECLARE_OP(BatchNormBackward, batch_norm_backward)
LS_DECLARE_OP(BatchNormInference, batch_norm_inference)
BatchNormShardForward batch_norm_shard_forward;
BatchNormShardAffine batch_norm_shard_affine;
BatchNormShardBackward batch_norm_shard_backward;
namespace cuda {
BatchNormShardForward batch_norm_shard_forward;
BatchNormShardAffine batch_norm_shard_affine;
BatchNormShardBackward batch_norm_shard_backward;
}  // namespace cuda

}  // namespace lockstep::kernels
