// Specification of kernels/reduce/peer_sum.h: the tree of tests/reference/tree_sum.h applied to
// whole vectors.
#pragma once

#include <vector>

#include "tests/reference/tree_sum.h"

namespace lockstep::reference {

// Requires: the leaves are representable in `format`.
inline std::vector<double> peer_sum(const std::vector<std::vector<double>>& leaves,
                                    const FloatFormat& format) {
  std::vector<double> sums(leaves.front().size());
  std::vector<double> column(leaves.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    for (size_t w = 0; w < leaves.size(); ++w) column[w] = leaves[w][i];
    sums[i] = tree_sum(column, format);
  }
  return sums;
}

}  // namespace lockstep::reference
