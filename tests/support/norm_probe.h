// Values whose L2 norm in f32 reveals the order in which doubles were added.
#pragma once

#include <random>
#include <vector>

#include "tests/support/float_types.h"

namespace lockstep::testing {

// Tensors of these lengths, all zeros except for two groups of elements. Four elements 8 * (1,
// 2^-12, 2^-12, 2^-24) are in one accumulator of kernels/reduce/tensor_norms.h; their norm is
// halfway between 8 and the next float. Ten elements of 8 * 2^-27 are in random places. Their
// squares vanish if they are added to the first group one by one, but if enough of them are added
// to each other first, the norm rounds up. Requires: lengths[0] >= 4096.
inline std::vector<Tensor> norm_probe(Dtype dtype,
                                      const std::vector<int64_t>& lengths,
                                      uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> tensors;
  int64_t numel = 0;
  for (const int64_t length : lengths) {
    tensors.push_back(Tensor::zeros({length}, dtype));
    numel += length;
  }
  const auto large = static_cast<int64_t>(random() % 1024);
  for (int i = 0; i < 10; ++i) {
    // Half of them are near the large ones, where the tree adds neighbors late.
    auto at = static_cast<int64_t>(random() % static_cast<uint64_t>(numel));
    if (i % 2 == 0) at = large ^ static_cast<int64_t>(random() % 16);
    size_t tensor = 0;
    for (; at >= lengths[tensor]; ++tensor) at -= lengths[tensor];
    set(tensors[tensor], at, 8 * 0x1p-27);
  }
  const double values[] = {8, 8 * 0x1p-12, 8 * 0x1p-12, 8 * 0x1p-24};
  for (int64_t i = 0; i < 4; ++i) set(tensors[0], large + i * 1024, values[i]);
  return tensors;
}

}  // namespace lockstep::testing
