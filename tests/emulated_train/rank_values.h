// Values whose sum over ranks tells in which order it was formed, for tests of exchanges.
#pragma once

#include <cstring>
#include <vector>

#include "comm/schedule.h"
#include "core/tensor.h"
#include "core/tree.h"

namespace lockstep::testing {

// Much cancels, so that another order of the sum has other bits.
inline float rank_value(int rank, int64_t i, int step) {
  return (i % 2 == 0 ? 1 : -1e4F) / static_cast<float>(1 + rank * 7 + i % 13 + step);
}

// On the CPU, f32.
inline Tensor rank_values(const Shape& shape, int rank, int step) {
  Tensor values = Tensor::empty(shape, Dtype::kF32);
  for (int64_t i = 0; i < values.numel(); ++i) values.data<float>()[i] = rank_value(rank, i, step);
  return values;
}

// Whether `got`, on the CPU, has the bits of core/tree.h's sum of all ranks' values.
inline bool is_tree_sum(const Tensor& got, int ranks, int step) {
  for (int64_t i = 0; i < got.numel(); ++i) {
    std::vector<float> leaves;
    for (int rank = 0; rank < ranks; ++rank) leaves.push_back(rank_value(rank, i, step));
    for_each_tree_merge(ranks, [&](int64_t into, int64_t from) {
      leaves[static_cast<size_t>(into)] += leaves[static_cast<size_t>(from)];
    });
    if (std::memcmp(leaves.data(), got.data<float>() + i, sizeof(float)) != 0) return false;
  }
  return true;
}

// True for the sums of comm/schedule.h's ring, which adds slice j from rank j on, to the right.
inline bool is_ring_sum(const Tensor& got, int ranks, int step) {
  for (int slice = 0; slice < ranks; ++slice) {
    const comm::Slice part = comm::slice_of_units(got.numel(), 64, ranks, slice);
    for (int64_t i = part.begin; i < part.end(); ++i) {
      float sum = rank_value(slice, i, step);
      for (int k = 1; k < ranks; ++k) sum += rank_value((slice + k) % ranks, i, step);
      if (std::memcmp(&sum, got.data<float>() + i, sizeof(float)) != 0) return false;
    }
  }
  return true;
}

}  // namespace lockstep::testing
