// core/tree.h's tree over leaves that a thread reads one after the other.
#pragma once

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/pack.cuh"
#include "kernels/support/cuda/shard_limits.h"

namespace lockstep::kernels::cuda {
namespace {

// Errors: ShapeError for more leaves than sum_leaves takes.
inline void check_leaves(const char* op, int64_t leaves) {
  if (leaves > kMaxTreeLeaves) {
    throw ShapeError(
        fmt::format("[{}] leaves: got {}, expected {} at most", op, leaves, kMaxTreeLeaves));
  }
}

template <class Node, int n>
__device__ __forceinline__ Pack<Node, n> join(const Pack<Node, n>& left,
                                              const Pack<Node, n>& right) {
  Pack<Node, n> sum;
#pragma unroll
  for (int i = 0; i < n; ++i) sum[i] = from_float<Node>(to_float(left[i]) + to_float(right[i]));
  return sum;
}

// The tree over leaves [first, first + kLeaves).
template <int kLeaves, class Load>
__device__ __forceinline__ auto sum_subtree(int first, const Load& load) {
  if constexpr (kLeaves == 1) {
    return load(first);
  } else {
    constexpr int kLeft = kLeaves == 2 ? 1 : 2;
    const auto left = sum_subtree<kLeft>(first, load);
    return join(left, sum_subtree<kLeaves - kLeft>(first + kLeft, load));
  }
}

// The tree over `leaves` leaves; load(k) returns leaf k, rounded to Node like each inner node.
// Complete subtrees are merged as in a binary counter; the rest is joined from the right at the
// end. Pending subtrees are kept in shared memory, in a separate column for each thread: in
// registers they would halve the number of resident warps.
// Requires: 1 <= leaves <= kMaxTreeLeaves, blocks of kElementwiseThreads.
template <class Node, int n, class Load>
__device__ __forceinline__ Pack<Node, n> sum_leaves(int leaves, const Load& load) {
  static_assert(kTreeFan == 4);
  __shared__ __align__(16) Node waiting[kTreeLevels][kElementwiseThreads][n];
  const unsigned column = threadIdx.x;
  const auto at = [&](int level) { return load_pack<n>(waiting[level][column]); };
  const int subtrees = leaves / kTreeFan;
  for (int k = 0; k < subtrees; ++k) {
    Pack<Node, n> node = sum_subtree<kTreeFan>(k * kTreeFan, load);
    int level = 0;
    for (; (k >> level & 1) != 0; ++level) node = join(at(level), node);
    store_pack(waiting[level][column], node);
  }
  const int rest = subtrees * kTreeFan;
  int level = 0;
  Pack<Node, n> root{};
  switch (leaves - rest) {
    case 0:
      while ((subtrees >> level & 1) == 0) ++level;
      root = at(level++);
      break;
    case 1:
      root = sum_subtree<1>(rest, load);
      break;
    case 2:
      root = sum_subtree<2>(rest, load);
      break;
    default:
      root = sum_subtree<3>(rest, load);
  }
  for (; subtrees >> level != 0; ++level) {
    if ((subtrees >> level & 1) != 0) root = join(at(level), root);
  }
  return root;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
