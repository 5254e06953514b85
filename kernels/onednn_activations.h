// Activations between NHWC, as tensors hold them, and the layout that a primitive works on.
#pragma once

#include <optional>

#include "kernels/onednn_shim.h"

namespace lockstep::kernels::onednn {

// Where the layouts are one, the primitive gets the tensor's own memory; else a staged copy.
class ActivationLayout {
 public:
  ActivationLayout(const MemoryDesc& plain, const MemoryDesc& preferred);

  size_t staged_bytes() const { return to_preferred_ ? preferred_.get_size() : 0; }

  // The primitive's argument. `staged`: staged_bytes() of scratch memory, 64-byte aligned.
  dnnl::memory input(const float* plain, std::byte* staged) const;
  dnnl::memory output(float* plain, std::byte* staged) const;
  // After the primitive has written output(): brings it to `plain`.
  void finish(std::byte* staged, float* plain) const;

 private:
  MemoryDesc plain_, preferred_;
  std::optional<Primitive> to_preferred_, to_plain_;
};

}  // namespace lockstep::kernels::onednn
