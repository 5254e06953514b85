// Gaussian error linear unit, and its gradient. With the normal distribution's
// cdf(x) = (1 + erf(x / sqrt(2))) / 2 and pdf(x) = exp(-x^2 / 2) / sqrt(2 pi):
//   kErf     out = in * cdf(in), grad_in = grad_out * (cdf(in) + in * pdf(in))
//   kTanh    out = in * (1 + tanh(u)) / 2, where u = sqrt(2 / pi) * (in + 0.044715 in^3)
// Computed in f32, within 2.5e-7 |in|, and a gradient within 3e-7 |grad_out|, and rounded once to
// out's type; the same bits on all devices and wherever an element lies. NaN stays NaN. As in
// PyTorch, -infinity gives NaN, and so does each infinity's gradient.
// Source: torch.nn.functional.gelu. Spec: tests/reference/gelu.h
#pragma once

#include <cstdint>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

enum class GeluForm : uint8_t { kErf, kTanh };

// Shapes: any, the same for in and out; f32, f16 or bf16. out may be in. Errors: ShapeError,
// DtypeError, DeviceError.
using GeluForward = void(Stream& stream, const Tensor& in, GeluForm form, Tensor& out);
// Shapes: all the same. in is the forward input. grad_in may be grad_out.
using GeluBackward =
    void(Stream& stream, const Tensor& in, const Tensor& grad_out, GeluForm form, Tensor& grad_in);

LS_DECLARE_OP(GeluForward, gelu_forward)
LS_DECLARE_OP(GeluBackward, gelu_backward)

}  // namespace lockstep::kernels
