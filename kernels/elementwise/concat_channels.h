// Concatenates the channels of two images, and splits the gradient accordingly.
//   out[n, 0..A, h, w] = a[n, :, h, w]        out[n, A..A+B, h, w] = b[n, :, h, w]
// Values keep their bits, including NaN. Source: torch.cat(dim=1). Spec:
// tests/reference/concat_channels.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: a (N,A,H,W) f32, f16 or bf16; b (N,B,H,W) and out (N,A+B,H,W) like a. Errors: ShapeError,
// also on CUDA for an image of 2^31 elements or more, DtypeError, DeviceError.
using ConcatChannelsForward =
    void(Stream& stream, const Shards& shards, const Tensor& a, const Tensor& b, Tensor& out);
// Shapes: grad_out (N,A+B,H,W); grad_a (N,A,H,W) and grad_b (N,B,H,W), overwritten.
using ConcatChannelsBackward = void(
    Stream& stream, const Shards& shards, const Tensor& grad_out, Tensor& grad_a, Tensor& grad_b);

LS_DECLARE_OP(ConcatChannelsForward, concat_channels_forward)
LS_DECLARE_OP(ConcatChannelsBackward, concat_channels_backward)

}  // namespace lockstep::kernels
