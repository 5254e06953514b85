// Mean over H and W, and its gradient.
//   out[n,c] = sum over (h,w) of in[n,c,h,w] / (H*W), summed in row-major order of the pixels, in
//   f32, then rounded to out's type
// Source: torch.nn.functional.adaptive_avg_pool2d(in, 1). Spec: tests/reference/global_avg_pool.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: in (N,C,H,W) f32, f16 or bf16, H*W >= 1; out (N,C) like in. Errors: ShapeError,
// DtypeError, DeviceError.
using GlobalAvgPoolForward = void(Stream& stream,
                                  const Shards& shards,
                                  const Tensor& in,
                                  Tensor& out);
// Shapes: grad_out (N,C); grad_in (N,C,H,W), overwritten.
using GlobalAvgPoolBackward = void(Stream& stream,
                                   const Shards& shards,
                                   const Tensor& grad_out,
                                   Tensor& grad_in);

LS_DECLARE_OP(GlobalAvgPoolForward, global_avg_pool_forward)
LS_DECLARE_OP(GlobalAvgPoolBackward, global_avg_pool_backward)

}  // namespace lockstep::kernels
