// Multiplies each channel of an image by its gate: the last step of squeeze-and-excitation.
//   out[n,c,h,w] = in[n,c,h,w] * g(gate[n,c])
//   kHardSigmoid   g(x) = min(max(x + 3, 0), 6) / 6
//   kSigmoid       g(x) = 1 / (1 + exp(-x)), within 2e-7 of itself; 0 from x = -84 down
// Computed in f32 and rounded once to out's type; the same bits on all devices. A gate value of NaN
// gives NaN; one of 0 gives zeros, but NaN for inputs that are NaN or infinite. The gradient
// through a hard sigmoid is 0 where it is flat, at the ends of its slope and for NaN.
// Source: torch.nn.functional.hardsigmoid, torch.sigmoid; timm's SqueezeExcite. Spec:
// tests/reference/channel_gate.h
#pragma once

#include <cstdint>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

enum class GateForm : uint8_t { kHardSigmoid, kSigmoid };

// Shapes: in (N,C,H,W) f32, f16 or bf16; gate (N,C) and out (N,C,H,W) like in. Errors: ShapeError,
// also on CUDA for an image of 2^31 elements or more, DtypeError, DeviceError.
using ChannelGateForward = void(Stream& stream,
                                const Shards& shards,
                                const Tensor& in,
                                const Tensor& gate,
                                GateForm form,
                                Tensor& out);
// grad_gate sums grad_out * in over the pixels in row-major order, in f32; the sum times the gate's
// slope is rounded. Shapes and errors: as above.
struct ChannelGateBackwardArgs {
  const Tensor& grad_out;  // (N,C,H,W)
  const Tensor& in;        // (N,C,H,W)
  const Tensor& gate;      // (N,C)
  GateForm form;
  Tensor& grad_in;    // (N,C,H,W), overwritten
  Tensor& grad_gate;  // (N,C), overwritten
};
using ChannelGateBackward = void(Stream& stream,
                                 const Shards& shards,
                                 const ChannelGateBackwardArgs& args);

LS_DECLARE_OP(ChannelGateForward, channel_gate_forward)
LS_DECLARE_OP(ChannelGateBackward, channel_gate_backward)

}  // namespace lockstep::kernels
