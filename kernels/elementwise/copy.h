// Copies, which may convert between float types.
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Copies one tensor into another.
//   dst[i] = src[i], bit for bit
// Spec: tests/reference/copy.h
//
// Shapes: the same; any dtype, the same for both. Errors: ShapeError, DtypeError, DeviceError.
using Copy = void(Stream& stream, const Tensor& src, Tensor& dst);

LS_DECLARE_OP(Copy, copy)

// Conversion between float types.
//   dst[i] = src[i] rounded to nearest, ties to even
// Overflow gives infinity, NaN stays NaN, denormals are kept. Source: IEEE 754; torch.Tensor.to.
// Spec: tests/reference/cast.h
//
// Shapes: the same; f32, f16 or bf16 each. Errors: ShapeError, DtypeError, DeviceError.
using Cast = void(Stream& stream, const Tensor& src, Tensor& dst);

LS_DECLARE_OP(Cast, cast)

}  // namespace lockstep::kernels
