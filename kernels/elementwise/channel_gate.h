// Each channel of an image times its gate, a hard sigmoid: the end of squeeze-and-excitation.
//   out[n,c,h,w] = in[n,c,h,w] * g(gate[n,c])        g(x) = min(max(x + 3, 0), 6) / 6
// In f32, rounded once to out's type. A gate of NaN gives NaN, a closed one, of -3 and less, zeros,
// but NaN of NaN and infinity; in the gradient of a gate that is flat, is NaN or ends the slope
// there is nothing, whatever comes in.
// Source: torch.nn.functional.hardsigmoid; timm's SqueezeExcite. Spec:
// tests/reference/channel_gate.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: in (N,C,H,W) f32, f16 or bf16; gate (N,C) and out (N,C,H,W) like in. Errors: ShapeError,
// also on CUDA for an image of 2^31 elements or more, DtypeError, DeviceError.
using ChannelGateForward =
    void(Stream& stream, const Shards& shards, const Tensor& in, const Tensor& gate, Tensor& out);
// grad_gate sums grad_out * in over the pixels in row-major order, in f32; the sum times the gate's
// slope is rounded. Shapes and errors: as above.
struct ChannelGateBackwardArgs {
  const Tensor& grad_out;  // (N,C,H,W)
  const Tensor& in;        // (N,C,H,W)
  const Tensor& gate;      // (N,C)
  Tensor& grad_in;         // (N,C,H,W), overwritten
  Tensor& grad_gate;       // (N,C), overwritten
};
using ChannelGateBackward = void(Stream& stream,
                                 const Shards& shards,
                                 const ChannelGateBackwardArgs& args);

// The hard sigmoid, min(max(x + 3, 0), 6) / 6; NaN of NaN.
LS_HOST_DEVICE float hard_sigmoid(float x) {
  const float shifted = x + 3;
  const float positive = shifted < 0 ? 0 : shifted;
  return (positive > 6 ? 6 : positive) / 6;
}

// Gradient through the hard sigmoid: zero where it is flat, at the ends of the slope and for NaN,
// as in PyTorch.
LS_HOST_DEVICE float hard_sigmoid_gradient(float x, float gradient) {
  return x > -3 && x < 3 ? gradient / 6 : 0;
}

LS_DECLARE_OP(ChannelGateForward, channel_gate_forward)
LS_DECLARE_OP(ChannelGateBackward, channel_gate_backward)

}  // namespace lockstep::kernels
