// 2-D convolution (cross-correlation, no dilation) of each channel with its own filter, and its
// gradients.
//   out[n,c,oy,ox] = sum over (r,s) of weight[c,0,r,s] * in[n, c, oy*stride_h - pad_h + r,
//   ox*stride_w - pad_w + s]
// Products with padding are left out. Sums are in f32; a 16-bit result is rounded once.
// Source: torch.nn.functional.conv2d with groups = channels. Spec:
// tests/reference/depthwise_conv2d.h
#pragma once

#include "kernels/conv/conv2d.h"

namespace lockstep::kernels {

// in (N,C,H,W), weight (C,1,R,S) -> (N,C,OH,OW). Errors: ShapeError unless channels agree, 1 <= R*S
// <= 1024, stride >= 1, pad >= 0 and OH, OW >= 1.
Shape depthwise_conv2d_output_shape(const Shape& in,
                                    const Shape& weight,
                                    const Conv2dParams& params);

// Shapes: in (N,C,H,W) f32, f16 or bf16; weight (C,1,R,S) and out (N,C,OH,OW) like in;
// out is overwritten. Taps add in row-major order. Errors: ShapeError, also where CUDA's indices
// would not hold the sizes, DtypeError, DeviceError.
using DepthwiseConv2dForward = void(Stream& stream,
                                    const Shards& shards,
                                    const Tensor& in,
                                    const Tensor& weight,
                                    const Conv2dParams& params,
                                    Tensor& out);
// Shapes: grad_out (N,C,OH,OW); weight (C,1,R,S); grad_in (N,C,H,W), overwritten.
using DepthwiseConv2dBackwardData = void(Stream& stream,
                                         const Shards& shards,
                                         const Tensor& grad_out,
                                         const Tensor& weight,
                                         const Conv2dParams& params,
                                         Tensor& grad_in);
// Shapes: in (N,C,H,W); grad_out (N,C,OH,OW); weight_shape = (C,1,R,S); grad_weight (local shards,
// C*R*S) f32, each row in the order of the weights in memory, overwritten; no grad_bias. An empty
// shard's row is +0. The order of a row's sums depends only on the shard's shape and the dtype; it
// differs between CUDA and the CPU.
using DepthwiseConv2dBackwardWeight = void(Stream& stream,
                                           const Shards& shards,
                                           const Conv2dBackwardWeightArgs& args);

LS_DECLARE_OP(DepthwiseConv2dForward, depthwise_conv2d_forward)
LS_DECLARE_OP(DepthwiseConv2dBackwardData, depthwise_conv2d_backward_data)
LS_DECLARE_OP(DepthwiseConv2dBackwardWeight, depthwise_conv2d_backward_weight)

}  // namespace lockstep::kernels
