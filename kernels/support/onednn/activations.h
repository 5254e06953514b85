// Converts activations between a tensor's NHWC layout and what a primitive works on, which may be
// another layout, or f32 instead of a 16-bit type.
#pragma once

#include <optional>
#include <utility>

#include "core/stream.h"
#include "kernels/support/onednn/shim.h"

namespace lockstep::kernels::onednn {

// If both are the same, the primitive gets the tensor's own memory, otherwise a staged copy.
class ActivationLayout {
 public:
  // For tensors of type `stored`. `plain` describes the tensor's layout in the type that the
  // primitive computes in, `preferred` the primitive's layout.
  ActivationLayout(Dtype stored, const MemoryDesc& plain, const MemoryDesc& preferred);
  ActivationLayout(Dtype stored, const MemoryDesc& plain);  // `plain` is preferred, too

  size_t staged_bytes() const {
    return widened_bytes_ + (to_preferred_ ? preferred_.get_size() : 0);
  }

  // The primitive's argument. `staged`: staged_bytes() of scratch memory, 64-byte aligned.
  dnnl::memory input(const std::byte* tensor, std::byte* staged) const;
  dnnl::memory output(std::byte* tensor, std::byte* staged) const;
  // Call it after the primitive has written output(): converts the result to `tensor`.
  void finish(std::byte* staged, std::byte* tensor) const;

 private:
  Dtype stored_;
  MemoryDesc plain_, preferred_;
  int64_t widened_ = 0;  // values
  size_t widened_bytes_ = 0;
  std::optional<Primitive> to_preferred_, to_plain_;
};

// A primitive between two tensors of activations, on one shard's shape.
struct ActivationPlan : Plan {
  // overrun: bytes behind its scratchpad that the primitive may overwrite.
  ActivationPlan(ActivationLayout of_in,
                 ActivationLayout of_out,
                 const dnnl::primitive_desc_base& desc,
                 size_t overrun = 0)
      : in(std::move(of_in)),
        out(std::move(of_out)),
        primitive(desc),
        scratchpad(aligned(primitive.scratchpad_bytes() + overrun)) {}

  // A worker's scratch memory: the primitive's scratchpad, then staged activations.
  size_t scratch_bytes() const {
    return scratchpad + aligned(in.staged_bytes()) + aligned(out.staged_bytes());
  }
  std::byte* staged_in(std::byte* scratch) const { return scratch + scratchpad; }
  std::byte* staged_out(std::byte* scratch) const {
    return staged_in(scratch) + aligned(in.staged_bytes());
  }

  ActivationLayout in, out;
  Primitive primitive;
  size_t scratchpad;  // bytes
};

inline size_t scratch_bytes(const ActivationPlan& plan) {
  return plan.scratch_bytes();
}

}  // namespace lockstep::kernels::onednn
