// Batch normalization over (N,H,W), cut into the steps between which groups may talk to other
// ranks.
//
// Forward, training:
//   1. batch_norm_shard_stats   each shard's (mean, M2, images) per channel
//   2. batch_norm_merge_stats   a group's shards merged in core/tree.h's order by Chan's formula
//   3. batch_norm_forward       out = (in - mean) * weight / sqrt(M2 / count + eps) + bias
//                               [+ residual], [ReLU]
//   4. batch_norm_update_running
// Backward:
//   5. batch_norm_shard_sums    each shard's sum of g (bias gradient) and of g * xhat (weight
//                               gradient); g = grad_out, gated by ReLU
//   6. tree_sum                 a group's sums
//   7. batch_norm_backward      grad_in = weight * invstd * (g - sum_g / count
//                                                            - xhat * sum_gx / count)
// Evaluation: batch_norm_inference.
//
// Where each group is one shard, batch_norm_shard_forward does 1 to 4 and batch_norm_shard_backward
// 5 to 7, on CUDA in two launches each; in one, where a convolution gave sums.
//
// ReLU's gate: steps 5 and 7 find it again from in, so that out need not be kept. With a residual
// the sign of out, as stored, is the gate; step 5 writes the gated gradient, which is the
// residual's gradient and step 7's grad_out.
//
// A statistics vector has 2C+1 floats: mean[C], M2[C] (sum of squared deviations), images;
// count = images * H * W. An empty shard gives zeros, and merging passes the other side through.
// in is (N,C,H,W), or (N,C) with H = W = 1. It and what is like it are of one dtype: f32, f16 or
// bf16. All else is f32, and so is the arithmetic: a 16-bit result is rounded once, when stored.
// Source: torch.nn.functional.batch_norm; Chan, Golub, LeVeque 1979. Spec:
// tests/reference/batch_norm.h
#pragma once

#include "core/shards.h"
#include "kernels/declare_op.h"

namespace lockstep::kernels {

struct BatchNormParams {
  float eps = 1e-5F;
  bool relu = false;  // last of all; NaN stays NaN and lets the gradient through
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
// 3. Shapes: group_stats (local groups, 2C+1): row j is group shards.first_group() + j; weight,
// bias (C); residual undefined or like in; out like in.
using BatchNormForward = void(Stream& stream,
                              const Shards& shards,
                              const Tensor& in,
                              const Tensor& group_stats,
                              const Tensor& weight,
                              const Tensor& bias,
                              const Tensor& residual,
                              const BatchNormParams& params,
                              Tensor& out);
// 4. running = (1 - momentum) * running + momentum * batch, the variance unbiased: M2 / (count -
// 1). Shapes: stats (2C+1); running_mean, running_var (C), in place. Errors: ShapeError unless
// count >= 2; on CUDA, where the count is known too late, the variances become NaN.
using BatchNormUpdateRunning = void(Stream& stream,
                                    const Tensor& stats,
                                    int64_t pixels,
                                    float momentum,
                                    Tensor& running_mean,
                                    Tensor& running_var);
// 5. out: what 3 gave, where it added a residual and applied ReLU; else undefined. grad_residual:
// like in where out is defined, overwritten with grad_out where out > 0 or NaN and 0 elsewhere;
// may be grad_out's memory.
// Shapes: as 3; out, grad_out like in; grad_weight, grad_bias (local shards, C), overwritten.
using BatchNormShardSums = void(Stream& stream,
                                const Shards& shards,
                                const Tensor& in,
                                const Tensor& out,
                                const Tensor& grad_out,
                                const Tensor& group_stats,
                                const Tensor& weight,
                                const Tensor& bias,
                                const BatchNormParams& params,
                                Tensor& grad_residual,
                                Tensor& grad_weight,
                                Tensor& grad_bias);
// 7. Where 5 wrote grad_residual, grad_out is that and params.relu is false.
// Shapes: as 5; group_grad_weight, group_grad_bias (local groups, C): the whole groups' sums;
// grad_in like in, overwritten; may be grad_out's memory.
using BatchNormBackward = void(Stream& stream,
                               const Shards& shards,
                               const Tensor& in,
                               const Tensor& grad_out,
                               const Tensor& group_stats,
                               const Tensor& group_grad_weight,
                               const Tensor& group_grad_bias,
                               const Tensor& weight,
                               const Tensor& bias,
                               const BatchNormParams& params,
                               Tensor& grad_in);
// 1 to 4 where each group is one shard. running_mean and running_var follow the first shard here;
// undefined: nothing follows. sums: undefined, or on CUDA kernels/conv2d_fused.h's, from which the
// statistics are taken in place of 1: digits are lost where mean >> deviation. Shapes: as 1, 3 and
// 4; stats (local shards, 2C+1), overwritten; sums (2, local shards, C) f32.
// Errors: ShapeError unless each group is one shard, and count >= 2 where running ones follow.
using BatchNormShardForward = void(Stream& stream,
                                   const Shards& shards,
                                   const Tensor& in,
                                   const Tensor& sums,
                                   const Tensor& weight,
                                   const Tensor& bias,
                                   const Tensor& residual,
                                   const BatchNormParams& params,
                                   float momentum,
                                   Tensor& running_mean,
                                   Tensor& running_var,
                                   Tensor& stats,
                                   Tensor& out);
// Computes the factors of step 3 on CUDA without `out`, for callers that apply them: affine (2,
// local shards, C) of a float type, scales and then shifts, so that out = in * scale + shift up to
// their rounding. `in` is not read. Shapes: as above.
using BatchNormShardAffine = void(Stream& stream,
                                  const Shards& shards,
                                  const Tensor& in,
                                  const Tensor& sums,
                                  const Tensor& weight,
                                  const Tensor& bias,
                                  const BatchNormParams& params,
                                  float momentum,
                                  Tensor& running_mean,
                                  Tensor& running_var,
                                  Tensor& stats,
                                  Tensor& affine);
// 5 to 7 where each group is one shard. Shapes: as 5; grad_in like in, overwritten; may be
// grad_out's memory. Where grad_residual is that too, grad_in alone is left. addend: undefined, or,
// where grad_residual is grad_out's memory, like in: kernels/add.h first adds it to grad_out.
using BatchNormShardBackward = void(Stream& stream,
                                    const Shards& shards,
                                    const Tensor& in,
                                    const Tensor& out,
                                    const Tensor& grad_out,
                                    const Tensor& addend,
                                    const Tensor& stats,
                                    const Tensor& weight,
                                    const Tensor& bias,
                                    const BatchNormParams& params,
                                    Tensor& grad_residual,
                                    Tensor& grad_weight,
                                    Tensor& grad_bias,
                                    Tensor& grad_in);
// Shapes: in (N,C,H,W) or (N,C); running_mean, running_var, weight, bias (C); residual undefined or
// like in; out like in.
using BatchNormInference = void(Stream& stream,
                                const Shards& shards,
                                const Tensor& in,
                                const Tensor& running_mean,
                                const Tensor& running_var,
                                const Tensor& weight,
                                const Tensor& bias,
                                const Tensor& residual,
                                const BatchNormParams& params,
                                Tensor& out);

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
