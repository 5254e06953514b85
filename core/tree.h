// The fixed binary tree in whose order all sums over the batch are formed.
#pragma once

#include <cstdint>

namespace lockstep {

// Calls merge(into, from) for each inner node of the tree, children before parents. Over n leaves
// the left subtree holds the largest power of two below n; the order of the leaves is kept. A
// caller that keeps node values in place finds the root at leaf 0. A complete subtree may be merged
// elsewhere first: leaves, then shards, then ranks continue the same tree.
template <class Merge>
constexpr void for_each_tree_merge(int64_t leaves, Merge&& merge) {
  for (int64_t stride = 1; stride < leaves; stride *= 2) {
    for (int64_t into = 0; into + stride < leaves; into += 2 * stride) {
      merge(into, into + stride);
    }
  }
}

}  // namespace lockstep
