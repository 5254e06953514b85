// Activations between NHWC, as tensors hold them, and what a primitive works on: perhaps another
// layout, or f32 in the place of 16 bits.
#pragma once

#include <optional>

#include "kernels/onednn_shim.h"

namespace lockstep::kernels::onednn {

// Where both are one, the primitive gets the tensor's own memory; else a staged copy.
class ActivationLayout {
 public:
  // Tensors of `stored` whose layout `plain` describes, in the type that the primitive computes in.
  ActivationLayout(Dtype stored, const MemoryDesc& plain, const MemoryDesc& preferred);
  ActivationLayout(Dtype stored, const MemoryDesc& plain);  // which is preferred too

  size_t staged_bytes() const {
    return widened_bytes_ + (to_preferred_ ? preferred_.get_size() : 0);
  }

  // The primitive's argument. `staged`: staged_bytes() of scratch memory, 64-byte aligned.
  dnnl::memory input(const std::byte* tensor, std::byte* staged) const;
  dnnl::memory output(std::byte* tensor, std::byte* staged) const;
  // After the primitive has written output(): brings it to `tensor`.
  void finish(std::byte* staged, std::byte* tensor) const;

 private:
  Dtype stored_;
  MemoryDesc plain_, preferred_;
  int64_t widened_ = 0;  // values
  size_t widened_bytes_ = 0;
  std::optional<Primitive> to_preferred_, to_plain_;
};

}  // namespace lockstep::kernels::onednn
