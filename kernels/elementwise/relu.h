// Rectified linear unit, and its gradient.
//   out = in > 0 or in is NaN ? in : 0        grad_in = out <= 0 ? 0 : grad_out
// So NaN stays NaN forward and lets the gradient through, as in PyTorch.
// Source: torch.nn.functional.relu. Spec: tests/reference/relu.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: any, the same for in and out; f32, f16 or bf16. out may be in. Errors: ShapeError,
// DtypeError, DeviceError.
using ReluForward = void(Stream& stream, const Tensor& in, Tensor& out);
// Shapes: all the same. out is the forward result. grad_in may be grad_out.
using ReluBackward = void(Stream& stream,
                          const Tensor& out,
                          const Tensor& grad_out,
                          Tensor& grad_in);

LS_DECLARE_OP(ReluForward, relu_forward)
LS_DECLARE_OP(ReluBackward, relu_backward)

}  // namespace lockstep::kernels
