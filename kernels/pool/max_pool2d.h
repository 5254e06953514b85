// Max pooling over H and W, and its gradient.
//   out[n,c,oy,ox] = max over (ky,kx) of in[n, c, oy*stride_h - pad_h + ky, ox*stride_w - pad_w +
//   kx]
// Padding never wins. NaN wins over all other values; of several NaNs the last wins. Of equal
// values the first in row-major (ky,kx) order wins, on every backend. Source:
// torch.nn.functional.max_pool2d (ceil_mode=False, dilation=1). Spec: tests/reference/max_pool2d.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct MaxPool2dParams {  // all in pixels; pad is per side
  int kernel_h = 0, kernel_w = 0, stride_h = 0, stride_w = 0, pad_h = 0, pad_w = 0;
};

// (N,C,H,W) -> (N,C,OH,OW). Errors: ShapeError unless kernel, stride >= 1, kernel_h * kernel_w <=
// 256, 0 <= pad <= kernel / 2, OH, OW >= 1.
Shape max_pool2d_output_shape(const Shape& in, const MaxPool2dParams& params);

// Shapes: in (N,C,H,W) f32, f16 or bf16; out (N,C,OH,OW) like in; winner (N,C,OH,OW) u8 =
// ky * kernel_w + kx of the winning tap. Errors: ShapeError, also for an image of 2^31 elements or
// more on CUDA, DtypeError, DeviceError.
using MaxPool2dForward = void(Stream& stream,
                              const Shards& shards,
                              const Tensor& in,
                              const MaxPool2dParams& params,
                              Tensor& out,
                              Tensor& winner);
// Shapes: grad_out, winner (N,C,OH,OW); grad_in (N,C,H,W), overwritten. Where windows overlap, an
// input adds its gradients in row-major order of the outputs, in f32, and rounds the sum.
using MaxPool2dBackward = void(Stream& stream,
                               const Shards& shards,
                               const Tensor& grad_out,
                               const Tensor& winner,
                               const MaxPool2dParams& params,
                               Tensor& grad_in);

LS_DECLARE_OP(MaxPool2dForward, max_pool2d_forward)
LS_DECLARE_OP(MaxPool2dBackward, max_pool2d_backward)

}  // namespace lockstep::kernels
