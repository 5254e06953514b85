// The parameter-free shortcut of CIFAR's ResNets (option A), and its gradient: takes every
// stride-th pixel and adds channels of zeros on both sides.
//   out[n,k,y,x] = in[n, k - pad, stride*y, stride*x] where pad <= k < pad + C, else 0
//   pad = (K - C) / 2
// Source: He et al. 2015, section 4.2; torch.nn.functional.pad(in[:, :, ::stride, ::stride], ...).
// Spec: tests/reference/subsample_pad.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// (N,C,H,W) -> (N,channels,ceil(H/stride),ceil(W/stride)). Errors: ShapeError unless stride >= 1
// and channels - C is even and not negative.
Shape subsample_pad_output_shape(const Shape& in, int64_t channels, int stride);

// Shapes: in (N,C,H,W) f32, f16 or bf16; out as above, of in's type, overwritten.
// Errors: ShapeError, DtypeError, DeviceError.
using SubsamplePadForward =
    void(Stream& stream, const Shards& shards, const Tensor& in, int stride, Tensor& out);
// Shapes: grad_out like out; grad_in (N,C,H,W), overwritten.
using SubsamplePadBackward =
    void(Stream& stream, const Shards& shards, const Tensor& grad_out, int stride, Tensor& grad_in);

LS_DECLARE_OP(SubsamplePadForward, subsample_pad_forward)
LS_DECLARE_OP(SubsamplePadBackward, subsample_pad_backward)

}  // namespace lockstep::kernels
