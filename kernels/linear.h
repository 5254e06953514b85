// Affine map of feature rows, and its gradients.
//   out[n,o] = bias[o] + sum over k of weight[o,k] * in[n,k]
// Each shard is one library call on the shard's shape, single-threaded; an empty shard makes none.
// Source: torch.nn.functional.linear; oneDNN inner product. Spec: tests/reference/linear.h
#pragma once

#include "core/shards.h"
#include "kernels/dispatch.h"

namespace lockstep::kernels {

// Shapes: in (N,K) f32; weight (O,K); bias (O) or undefined; out (N,O), overwritten. Errors:
// ShapeError, DtypeError, DeviceError.
using LinearForward = void(Stream& stream,
                           const Shards& shards,
                           const Tensor& in,
                           const Tensor& weight,
                           const Tensor& bias,
                           Tensor& out);
// Shapes: grad_out (N,O); weight (O,K); grad_in (N,K), overwritten.
using LinearBackwardData = void(Stream& stream,
                                const Shards& shards,
                                const Tensor& grad_out,
                                const Tensor& weight,
                                Tensor& grad_in);
// Shapes: in (N,K); grad_out (N,O); grad_weight (local shards, O*K), grad_bias (local shards, O) or
// undefined, overwritten. An empty shard's rows are +0.
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
