// Specification of kernels/reduce/tree_sum.h, including the rounding of leaves and of every inner
// node.
#pragma once

#include <cstddef>
#include <span>

#include "tests/reference/cast.h"

namespace lockstep::reference {

// Over n leaves, the left subtree holds the largest power of two below n. A node is a sum of floats
// that is rounded to `format`.
inline double tree_sum(std::span<const double> leaves, const FloatFormat& format) {
  if (leaves.size() == 1) return round_to(leaves[0], format);
  size_t left = 1;
  while (2 * left < leaves.size()) left *= 2;
  const double a = tree_sum(leaves.first(left), format);
  const double b = tree_sum(leaves.subspan(left), format);
  return round_to(static_cast<float>(a + b), format);
}

}  // namespace lockstep::reference
