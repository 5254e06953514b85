// An all-reduce in memory that all ranks can access: sums one vector of each rank into all copies.
//   sums[k][i] = tree over w of leaves[w][i]
// Each inner node is float(a) + float(b) rounded to the vectors' dtype. Tree: core/tree.h.
// Spec: tests/reference/peer_sum.h
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Element i of all leaves is read before element i of any sum is written.
// Shapes: leaves are W >= 1 tensors (N), all f32, all f16 or all bf16; sums are any number of such
// tensors.
// Requires: a sum is one of the leaves or overlaps no other tensor here. NaN and infinity follow
// IEEE addition. Errors: ShapeError (on CUDA also for more than kMaxPeers leaves or sums),
// DtypeError, DeviceError.
constexpr size_t kMaxPeers = 128;  // a power of two, so that as many leaves are a subtree
using PeerSum = void(Stream& stream, std::span<const Tensor> leaves, std::span<Tensor> sums);

LS_DECLARE_OP(PeerSum, peer_sum)

}  // namespace lockstep::kernels
