// Converts weights between a tensor's layout, KRSC for convolutions, and what primitives work on.
// Values are only copied, so results do not depend on how the work is divided.
#pragma once

#include <vector>

#include "core/stream.h"
#include "kernels/support/onednn/shim.h"

namespace lockstep::kernels::onednn {

// Returns the weights in the type that primitives compute in: the tensor's own memory, or a copy in
// widened_bytes() of scratch memory, which all threads make.
size_t widened_bytes(const Tensor& weight);
const std::byte* widened(Stream& stream, const Tensor& weight, std::byte* scratch);

// The blocked layout that a convolution prefers.
class WeightLayout {
 public:
  // Shapes: weight (K,C/groups,R,S); packed as weights_desc() has it. Errors: InternalError unless
  // `packed` is a blocked layout.
  WeightLayout(const Shape& weight, int groups, const MemoryDesc& packed);

  // Pieces of the filters that may be packed in parallel: pack(i) for all i in [0, pieces()) packs
  // everything, including zeros in the padding.
  int64_t pieces() const;
  // Requires: `dtype`, of both, is kF32 or kBF16.
  void pack(int64_t piece, Dtype dtype, const std::byte* weight, std::byte* packed) const;
  // Unpacks gradients, which are f32.
  void unpack(const float* packed, float* weight) const;

 private:
  // Calls move(offset in KRSC, offset in packed) for all values of filters [first, last). `weight`
  // is prefetched.
  template <class T, class Move>
  void for_values(const T* weight, int64_t first, int64_t last, Move&& move) const;
  template <class T>
  void pack_values(int64_t piece, const T* weight, T* packed) const;

  int64_t filters_, channels_, taps_;
  // Offsets by index, with those of the padding last. A value's position is the sum of its three
  // offsets.
  std::vector<int64_t> filter_offsets_, channel_offsets_, tap_offsets_;
  bool even_steps_;  // between the channels of every run
};

}  // namespace lockstep::kernels::onednn
