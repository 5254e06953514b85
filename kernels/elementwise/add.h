// Adds one tensor to another. The tape uses it to sum the gradients of a value with several
// consumers.
//   dst[i] = dst[i] + src[i]
#pragma once

#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: src and dst the same, any shape; f32, f16 or bf16. 16-bit sums are formed in f32 and
// rounded once. NaN and infinity follow IEEE addition. Errors: ShapeError, DtypeError, DeviceError.
using Add = void(Stream& stream, const Tensor& src, Tensor& dst);

LS_DECLARE_OP(Add, add)

}  // namespace lockstep::kernels
