// L2 norms of many tensors, and of all of them together.
//   norms[i] = sqrt(sum over tensor i of x * x);  norms[n] = sqrt(sum over all n tensors)
// The order of the sums is fixed, so that results do not depend on threads or devices: a tensor is
// cut into chunks of kNormChunk elements; element e of a chunk is added to accumulator e mod
// kNormAccumulators, in order of e; the accumulators of a chunk, the chunks of a tensor, and the
// tensors are each summed in core/tree.h's tree. Sums are in double, where squares are exact and do
// not overflow; roots are rounded to f32. Spec: tests/reference/tensor_norms.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

inline constexpr int64_t kNormChunk = 16384;
inline constexpr int64_t kNormAccumulators = 1024;

// Shapes: tensors any, f32, f16 or bf16 each; norms (n + 1), f32. A NaN gives NaN, otherwise an
// infinity gives infinity; a tensor without elements 0.
// Errors: ShapeError, DtypeError, DeviceError.
using TensorNorms = void(Stream& stream, std::span<const Tensor> tensors, Tensor& norms);

LS_DECLARE_OP(TensorNorms, tensor_norms)

}  // namespace lockstep::kernels
