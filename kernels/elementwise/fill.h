// Sets every element to one value.
//   out[i] = value, converted to out's dtype (round to nearest even for floats; integers must hold
//   it exactly)
// Spec: tests/reference/fill.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: any; every dtype. Errors: DtypeError when an integer dtype cannot hold value,
// DeviceError.
using Fill = void(Stream& stream, double value, Tensor& out);

LS_DECLARE_OP(Fill, fill)

}  // namespace lockstep::kernels
