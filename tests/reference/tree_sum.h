// Specification of kernels/tree_sum.h: rounding at every inner node is part of it, so it gives f32.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::reference {

// Over n leaves the left subtree holds the largest power of two below n.
inline float tree_sum(std::span<const float> leaves) {
  if (leaves.size() == 1) return leaves[0];
  size_t left = 1;
  while (2 * left < leaves.size()) left *= 2;
  const double a = tree_sum(leaves.first(left));
  const double b = tree_sum(leaves.subspan(left));
  return static_cast<float>(a + b);
}

}  // namespace lockstep::reference
