// Copies one tensor into another.
//   dst[i] = src[i], bit for bit
// Spec: tests/reference/copy.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: alike; same dtype, any. Errors: ShapeError, DtypeError, DeviceError.
using Copy = void(Stream& stream, const Tensor& src, Tensor& dst);

LS_DECLARE_OP(Copy, copy)

}  // namespace lockstep::kernels
