// A tensor times a number, in place.
//   values[i] = factor * values[i]
// Spec: tests/reference/scale.h
#pragma once

#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: any; f32. NaN and infinity follow IEEE multiplication. Errors: DtypeError, DeviceError.
using Scale = void(Stream& stream, float factor, Tensor& values);

LS_DECLARE_OP(Scale, scale)

}  // namespace lockstep::kernels
