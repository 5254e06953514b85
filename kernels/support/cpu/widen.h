// Converts arrays of f16 or bf16 values to floats and back, on the calling thread, for libraries
// that compute in f32.
#pragma once

#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// to[i] = from[i], i < n. Requires: `stored` is kF16 or kBF16.
using Widen = void(Dtype stored, const std::byte* from, int64_t n, float* to);
// to[i] = from[i] rounded to nearest, ties to even, i < n. Requires: as above.
using Narrow = void(const float* from, int64_t n, Dtype stored, std::byte* to);

Widen widen;
Narrow narrow;
LS_CPU_BODIES(Widen, widen)
LS_CPU_BODIES(Narrow, narrow)

}  // namespace lockstep::kernels
