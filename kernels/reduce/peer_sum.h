// Sum of one vector of every rank into all of their copies: an all-reduce in memory that all reach.
//   sums[k][i] = tree over w of leaves[w][i]
// Each inner node is float(a) + float(b) rounded to the vectors' dtype. Tree: core/tree.h.
// Spec: tests/reference/peer_sum.h
#pragma once

#include <span>

#include "core/tensor.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// One pass: an element of all leaves is read before it is written anywhere.
// Shapes: leaves W >= 1 tensors (N), f32, f16 or bf16, all alike; sums any number of such tensors.
// Requires: a sum is one of the leaves or overlaps no other tensor here. NaN and infinity follow
// IEEE addition. Errors: ShapeError (on CUDA also for more than 128 leaves or sums), DtypeError,
// DeviceError.
using PeerSum = void(Stream& stream, std::span<const Tensor> leaves, std::span<Tensor> sums);

LS_DECLARE_OP(PeerSum, peer_sum)

}  // namespace lockstep::kernels
