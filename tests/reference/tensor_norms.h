// Specification of kernels/reduce/tensor_norms.h: the same sums in the same order, one element at a
// time.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace lockstep::reference {

// The left subtree holds the largest power of two below n.
inline double tree_of_sums(std::span<const double> leaves) {
  if (leaves.empty()) return 0;
  if (leaves.size() == 1) return leaves[0];
  size_t left = 1;
  while (2 * left < leaves.size()) left *= 2;
  return tree_of_sums(leaves.first(left)) + tree_of_sums(leaves.subspan(left));
}

inline double sum_of_squares(std::span<const double> values) {
  constexpr size_t kChunk = 16384;
  constexpr size_t kAccumulators = 1024;
  std::vector<double> chunks;
  for (size_t first = 0; first < values.size(); first += kChunk) {
    std::vector<double> sums(kAccumulators);
    for (size_t e = 0; e < std::min(kChunk, values.size() - first); ++e)
      sums[e % kAccumulators] += values[first + e] * values[first + e];
    chunks.push_back(tree_of_sums(sums));
  }
  return tree_of_sums(chunks);
}

// One norm per tensor, then the norm of all tensors together.
inline std::vector<double> tensor_norms(std::span<const std::vector<double>> tensors) {
  std::vector<double> sums;
  std::vector<double> norms;
  for (const std::vector<double>& values : tensors) {
    sums.push_back(sum_of_squares(values));
    norms.push_back(std::sqrt(sums.back()));
  }
  norms.push_back(std::sqrt(tree_of_sums(sums)));
  return norms;
}

}  // namespace lockstep::reference
