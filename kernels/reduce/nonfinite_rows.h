// Counts the infinite and NaN elements of each row, to find where a divergence began.
//   counts[r] = elements of in[r] whose exponent is all ones
// Spec: tests/reference/nonfinite_rows.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: in (rows, ...), f32, f16 or bf16; counts (rows), i32. A row may be empty.
// Errors: ShapeError, also for a row of 2^31 elements or more; DtypeError; DeviceError.
using NonfiniteRows = void(Stream& stream, const Tensor& in, Tensor& counts);

LS_DECLARE_OP(NonfiniteRows, nonfinite_rows)

}  // namespace lockstep::kernels
