// Average pooling over H and W, and its gradient: of the whole image, or to any size.
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

using AvgPool2dForward = void(Stream& stream, const Shards& shards, const Tensor& in, Tensor& out);
using AvgPool2dBackward = void(Stream& stream,
                               const Shards& shards,
                               const Tensor& grad_out,
                               Tensor& grad_in);

// Mean over H and W, and its gradient.
//   out[n,c] = sum over (h,w) of in[n,c,h,w] / (H*W), summed in row-major order of the pixels, in
//   f32, then rounded to out's type
// Source: torch.nn.functional.adaptive_avg_pool2d(in, 1). Spec: tests/reference/global_avg_pool.h
//
// Shapes: in (N,C,H,W) f32, f16 or bf16, H*W >= 1; out (N,C) like in. Errors: ShapeError,
// DtypeError, DeviceError.
LS_DECLARE_OP(AvgPool2dForward, global_avg_pool_forward)
// Shapes: grad_out (N,C); grad_in (N,C,H,W), overwritten.
LS_DECLARE_OP(AvgPool2dBackward, global_avg_pool_backward)

// Mean over windows that divide H and W into OH and OW parts, and its gradient.
//   out[n,c,oy,ox] = mean of in[n,c,y,x] over floor(oy*H/OH) <= y < ceil((oy+1)*H/OH), x likewise
// Windows overlap where OH does not divide H, and repeat pixels where OH > H. Sums are in row-major
// order of the pixels, in f32, divided, then rounded to out's type. NaN and infinity reach the
// windows that hold them and no other.
// Source: torch.nn.functional.adaptive_avg_pool2d. Spec: tests/reference/adaptive_avg_pool2d.h
//
// Shapes: in (N,C,H,W) f32, f16 or bf16, H, W >= 1; out (N,C,OH,OW) like in, OH, OW >= 1.
// Errors: ShapeError, also for H, W, OH or OW above 32767 and on CUDA for an image of 2^31 elements
// or more, DtypeError, DeviceError.
struct PoolSpan {
  int begin, end;
};

// Returns window i of `parts` windows over `size` pixels. With the two exchanged it returns the
// windows that hold pixel i.
LS_HOST_DEVICE PoolSpan pool_span(int i, int size, int parts) {
  return {i * size / parts, ((i + 1) * size + parts - 1) / parts};
}

LS_DECLARE_OP(AvgPool2dForward, adaptive_avg_pool2d_forward)
// Shapes: grad_out (N,C,OH,OW); grad_in (N,C,H,W), overwritten. A pixel adds the gradients of its
// windows, each divided by the window's pixels, in row-major order of the outputs, in f32, and
// rounds the sum.
LS_DECLARE_OP(AvgPool2dBackward, adaptive_avg_pool2d_backward)

}  // namespace lockstep::kernels
