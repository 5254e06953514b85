// 2-D convolution (cross-correlation, no dilation), and its gradients.
//   out[n,k,oy,ox] = bias[k] + sum over (c,r,s) of weight[k,c,r,s] * in[n, g*C/groups + c,
//   oy*stride_h - pad_h + r, ox*stride_w - pad_w + s]
// where g = k / (K/groups) is the group of output k, and c goes over the C/groups channels of it.
// Sums are in f32; a result in 16 bits is rounded once.
// CPU: each shard is one single-threaded library call on the shard's shape; an empty shard makes
// none. 3x3 windows may be computed by Winograd's algorithm F(4x4,3x3), by kernels/conv/winograd.h
// or by oneDNN, and 5x5 windows by F(2x2,5x5): the error is some 1e-6 of the result's norm, and a
// NaN or an infinity spreads over its tile of 4x4, or 2x2, pixels. In f16, and in bf16 on a
// processor without bf16 instructions (onednn_has_bf16), the result is f32's, rounded. bf16
// instructions treat denormals as zero, and with an odd number of channels they carry a NaN or an
// infinity to the pixel before it. With them sums are direct, or by Winograd's algorithm
// F(2x2,3x3), whose error is some 0.4 % of the result's norm.
// CUDA: cuDNN, with one plan per shard, where kernels/conv/conv2d_cudnn.h says so. It sums in f32
// without rounding inputs first; in 16 bits the bias is rounded before it is added, and a gradient
// of the weights is rounded to the type of `in` before it is widened to f32. Otherwise direct sums,
// whose bits do not depend on how the batch is cut into shards.
// Source: torch.nn.functional.conv2d; oneDNN convolution; cuDNN's graph API; Lavin and Gray 2015,
// "Fast Algorithms for Convolutional Neural Networks". Spec: tests/reference/conv2d.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct Conv2dParams {  // pixels; pad is per side
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int groups = 1;  // ignored by depthwise_conv2d, which is a separate op
};

// in (N,C,H,W), weight (K,C/groups,R,S) -> (N,K,OH,OW). Errors: ShapeError unless channels agree,
// groups divide C and K, stride >= 1, pad >= 0 and OH, OW >= 1.
Shape conv2d_output_shape(const Shape& in, const Shape& weight, const Conv2dParams& params);

// in, weight and out: all f32, all f16 or all bf16.
struct Conv2dForwardArgs {
  const Tensor& in;                // (N,C,H,W)
  const Tensor& weight;            // (K,C/groups,R,S)
  const Tensor& bias = no_tensor;  // (K) f32; may be undefined
  Conv2dParams params = {};
  Tensor& out;  // (N,K,OH,OW), overwritten
};
// Shapes: above. Errors: ShapeError, DtypeError, DeviceError.
using Conv2dForward = void(Stream& stream, const Shards& shards, const Conv2dForwardArgs& args);
// Shapes: grad_out (N,K,OH,OW); weight (K,C/groups,R,S); grad_in (N,C,H,W), overwritten. Types as
// above.
using Conv2dBackwardData = void(Stream& stream,
                                const Shards& shards,
                                const Tensor& grad_out,
                                const Tensor& weight,
                                const Conv2dParams& params,
                                Tensor& grad_in);
// An empty shard's rows are +0.
struct Conv2dBackwardWeightArgs {
  const Tensor& in;           // (N,C,H,W)
  const Tensor& grad_out;     // (N,K,OH,OW)
  const Shape& weight_shape;  // (K,C/groups,R,S)
  Conv2dParams params = {};
  Tensor& grad_weight;  // (local shards, elements of weight) f32, rows in KRSC order, overwritten
  Tensor* grad_bias = nullptr;  // (local shards, K) f32, overwritten; may be null or undefined

  Tensor bias_gradient() const { return grad_bias == nullptr ? Tensor() : *grad_bias; }
};
using Conv2dBackwardWeight = void(Stream& stream,
                                  const Shards& shards,
                                  const Conv2dBackwardWeightArgs& args);

LS_DECLARE_ONEDNN_OP(Conv2dForward, conv2d_forward)
LS_DECLARE_ONEDNN_OP(Conv2dBackwardData, conv2d_backward_data)
LS_DECLARE_ONEDNN_OP(Conv2dBackwardWeight, conv2d_backward_weight)

}  // namespace lockstep::kernels
