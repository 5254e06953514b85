// Adds a bias to each channel, and computes its gradient.
//   out[n,k,...] = in[n,k,...] + bias[k]      grad_bias[s,k] = sum of shard s of grad_out[n,k,...]
// Arithmetic is in f32, out is rounded to its dtype. The gradient of `in` is grad_out itself.
// The order of the sums depends only on shapes and shards: kernels/support/column_sum.h. NaN and
// infinity follow IEEE addition.
// Source: the bias of torch.nn.Conv2d and torch.nn.Linear. Spec: tests/reference/add_bias.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: in (N,K) or (N,K,H,W) f32, f16 or bf16; bias (K) f32; out as in, and it may be in.
// Errors: ShapeError, DtypeError, DeviceError.
using AddBiasForward = void(Stream& stream, const Tensor& in, const Tensor& bias, Tensor& out);
// Shapes: grad_out (N,K) or (N,K,H,W); grad_bias (local shards, K) f32, overwritten. An empty
// shard's row is +0. Errors: also ShapeError for more than kMaxShardsOfRank shards, on CUDA.
using AddBiasBackward = void(Stream& stream,
                             const Shards& shards,
                             const Tensor& grad_out,
                             Tensor& grad_bias);

LS_DECLARE_OP(AddBiasForward, add_bias_forward)
LS_DECLARE_OP(AddBiasBackward, add_bias_backward)

}  // namespace lockstep::kernels
