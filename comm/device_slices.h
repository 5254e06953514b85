// The parts of a bucket on a GPU that its ranks sum.
#pragma once

#include "comm/schedule.h"
#include "core/tensor.h"

namespace lockstep::comm {

// Slices begin at whole units of 256 bytes, so that kernels and links move them in packs; their cut
// changes no bit of a tree, of which each element has its own.
inline int64_t unit_of(const Tensor& values) {
  return 256 / static_cast<int64_t>(size_of(values.dtype()));
}

// Shape: values (N). May be shorter than others, or empty.
inline Tensor part_of_rank(const Tensor& values, int ranks, int rank) {
  const Slice slice = slice_of_units(values.numel(), unit_of(values), ranks, rank);
  return values.slice(slice.begin, slice.count);
}

}  // namespace lockstep::comm
