// Activations between NHWC, as tensors hold them, and what a primitive works on: perhaps another
// layout, or f32 in the place of 16 bits.
#pragma once

#include <optional>
#include <utility>

#include "core/stream.h"
#include "kernels/support/onednn/shim.h"

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

// A primitive between two tensors of activations, on one shard's shape.
struct ActivationPlan : Plan {
  ActivationPlan(ActivationLayout of_in,
                 ActivationLayout of_out,
                 const dnnl::primitive_desc_base& desc)
      : in(std::move(of_in)), out(std::move(of_out)), primitive(desc) {}

  // A worker's scratch memory: what the primitive asks for, then staged activations.
  size_t scratch_bytes() const {
    return aligned(primitive.scratchpad_bytes()) + aligned(in.staged_bytes()) +
           aligned(out.staged_bytes());
  }
  std::byte* staged_in(std::byte* scratch) const {
    return scratch + aligned(primitive.scratchpad_bytes());
  }
  std::byte* staged_out(std::byte* scratch) const {
    return staged_in(scratch) + aligned(in.staged_bytes());
  }

  ActivationLayout in, out;
  Primitive primitive;
};

inline size_t scratch_bytes(const ActivationPlan& plan) {
  return plan.scratch_bytes();
}

}  // namespace lockstep::kernels::onednn
