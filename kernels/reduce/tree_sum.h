// Sum of shard leaves in the fixed tree of core/tree.h.
//   out[i] = tree over k of leaves[k,i]
// Leaves are rounded to out's dtype, and so is each inner node, float(a) + float(b). The order is
// part of the contract: no backend may use another. Spec: tests/reference/tree_sum.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: leaves (P,N), P >= 1; out (N), which may be leaves' first row if the dtypes are the same;
// f32, f16 or bf16 each. NaN and infinity follow IEEE addition, overflow gives infinity.
// Errors: ShapeError (on CUDA also for more than kMaxTreeLeaves), DtypeError, DeviceError.
using TreeSum = void(Stream& stream, const Tensor& leaves, Tensor& out);

LS_DECLARE_OP(TreeSum, tree_sum)

}  // namespace lockstep::kernels
