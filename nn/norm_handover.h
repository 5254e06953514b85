// Values that convolutions and batch norms hand to each other, where a convolution is one pass with
// them (kernels/conv2d_fused.h).
#pragma once

#include <utility>

#include "core/autograd.h"

namespace lockstep::nn {

// Sums of a convolution's result.
struct ChannelSums final : Handover {
  explicit ChannelSums(Tensor sums) : rows(std::move(sums)) {}

  Tensor rows;  // (2, local shards, C) f32
};

// A batch norm with ReLU that nobody has needed to carry out so far.
class DeferredNorm : public Handover {
 public:
  virtual const Tensor& in() const = 0;
  // (2, local shards, C) of in()'s type: the norm is max(0, in * scale + shift).
  virtual Tensor affine(Stream& stream) = 0;
};

}  // namespace lockstep::nn
