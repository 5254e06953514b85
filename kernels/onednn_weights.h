// Convolution weights between KRSC, as tensors hold them, and the blocked layout that a primitive
// prefers. Copies, so that bits do not depend on how the work is cut.
#pragma once

#include <vector>

#include "core/stream.h"
#include "kernels/onednn_shim.h"

namespace lockstep::kernels::onednn {

class WeightLayout {
 public:
  // Shapes: weight (K,C,R,S). Errors: InternalError unless `packed` is a blocked layout.
  WeightLayout(const Shape& weight, const MemoryDesc& packed);

  // Filters in pieces that may be packed side by side: pack(i) for i in [0, pieces()) is all of it,
  // zeros in the padding included.
  int64_t pieces() const;
  void pack(int64_t piece, const float* weight, float* packed) const;
  void unpack(const float* packed, float* weight) const;

 private:
  // Calls move(offset in KRSC, offset in packed) for all values of filters [first, last), with
  // `weight` at hand to be fetched ahead.
  template <class Move>
  void for_values(const float* weight, int64_t first, int64_t last, Move&& move) const;

  int64_t filters_, channels_, taps_;
  // Of the padded extents: a value lies at the sum of its three offsets.
  std::vector<int64_t> filter_offsets_, channel_offsets_, tap_offsets_;
  bool even_steps_;  // between the channels of every run
};

}  // namespace lockstep::kernels::onednn
