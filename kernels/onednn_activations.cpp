#include "kernels/onednn_activations.h"

#include "core/error.h"

namespace lockstep::kernels::onednn {
namespace {

Primitive copy_between(const MemoryDesc& from, const MemoryDesc& to) {
  Primitive copy(reorder(from, to));
  LS_CHECK(copy.scratchpad_bytes() == 0, "[onednn] a reorder that wants scratch memory");
  return copy;
}

}  // namespace

ActivationLayout::ActivationLayout(const MemoryDesc& plain, const MemoryDesc& preferred)
    : plain_(plain), preferred_(preferred) {
  if (plain == preferred) return;
  to_preferred_ = copy_between(plain, preferred);
  to_plain_ = copy_between(preferred, plain);
}

dnnl::memory ActivationLayout::input(const float* plain, std::byte* staged) const {
  if (!to_preferred_) return bind(plain_, plain);
  dnnl::memory argument = bind(preferred_, staged);
  to_preferred_->execute({{DNNL_ARG_FROM, bind(plain_, plain)}, {DNNL_ARG_TO, argument}}, nullptr);
  return argument;
}

dnnl::memory ActivationLayout::output(float* plain, std::byte* staged) const {
  return to_plain_ ? bind(preferred_, staged) : bind(plain_, plain);
}

void ActivationLayout::finish(std::byte* staged, float* plain) const {
  if (!to_plain_) return;
  to_plain_->execute(
      {{DNNL_ARG_FROM, bind(preferred_, staged)}, {DNNL_ARG_TO, bind(plain_, plain)}}, nullptr);
}

}  // namespace lockstep::kernels::onednn
