// Sum of shard leaves in the fixed tree of core/tree.h.
//   out[i] = tree over k of leaves[k,i]; each inner node is float(a) + float(b) rounded to f32
// The order is the contract: no other may be used, on any backend. Spec: tests/reference/tree_sum.h
#pragma once

#include "core/shards.h"
#include "kernels/dispatch.h"

namespace lockstep::kernels {

// Shapes: leaves (P,N) f32, P >= 1; out (N), which may be leaves' first row. NaN and infinity
// follow IEEE addition. Errors: ShapeError, DtypeError, DeviceError.
using TreeSum = void(Stream& stream, const Tensor& leaves, Tensor& out);

LS_DECLARE_OP(TreeSum, tree_sum)

}  // namespace lockstep::kernels
