// Affine map of feature rows, and its gradients.
//   out[n,o] = bias[o] + sum over k of weight[o,k] * in[n,k]
// Sums are in f32; a result in 16 bits is rounded once.
// CPU: each shard is one single-threaded library call on the shard's shape; an empty shard makes
// none. In f16, and in bf16 on a processor without bf16 instructions (onednn_has_bf16), the result
// is f32's, rounded. bf16 instructions treat denormals as zero.
// CUDA: cuBLASLt, with one plan per shard. It sums in f32 without rounding inputs first; in 16 bits
// the bias is rounded before it is added. Without cuBLASLt our own kernels, whose bits do not
// depend on how the batch is cut into shards.
// Source: torch.nn.functional.linear; oneDNN inner product; cuBLASLt. Spec:
// tests/reference/linear.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: in (N,K), weight (O,K) and out (N,O), overwritten: all f32, all f16 or all bf16; bias (O)
// f32 or undefined. Errors: ShapeError, DtypeError, DeviceError.
using LinearForward = void(Stream& stream,
                           const Shards& shards,
                           const Tensor& in,
                           const Tensor& weight,
                           const Tensor& bias,
                           Tensor& out);
// Shapes: grad_out (N,O); weight (O,K); grad_in (N,K), overwritten. Types as above.
using LinearBackwardData = void(Stream& stream,
                                const Shards& shards,
                                const Tensor& grad_out,
                                const Tensor& weight,
                                Tensor& grad_in);
// Shapes: in (N,K); grad_out (N,O); grad_weight (local shards, O*K) and grad_bias (local shards, O)
// or undefined, overwritten, f32. An empty shard's rows are +0.
using LinearBackwardWeight = void(Stream& stream,
                                  const Shards& shards,
                                  const Tensor& in,
                                  const Tensor& grad_out,
                                  Tensor& grad_weight,
                                  Tensor& grad_bias);

LS_DECLARE_ONEDNN_OP(LinearForward, linear_forward)
LS_DECLARE_ONEDNN_OP(LinearBackwardData, linear_backward_data)
LS_DECLARE_ONEDNN_OP(LinearBackwardWeight, linear_backward_weight)

}  // namespace lockstep::kernels
