#include "kernels/support/onednn/activations.h"

#include "core/check.h"
#include "core/error.h"
#include "kernels/support/cpu/widen.h"

namespace lockstep::kernels::onednn {
namespace {

Primitive copy_between(const MemoryDesc& from, const MemoryDesc& to) {
  Primitive copy(reorder(from, to));
  LS_CHECK(copy.scratchpad_bytes() == 0, "[onednn] a reorder that wants scratch memory");
  return copy;
}

}  // namespace

ActivationLayout::ActivationLayout(Dtype stored,
                                   const MemoryDesc& plain,
                                   const MemoryDesc& preferred)
    : stored_(stored), plain_(plain), preferred_(preferred) {
  if (stored != computing_type(stored)) {
    widened_ = static_cast<int64_t>(plain.get_size() / sizeof(float));
    widened_bytes_ = aligned(plain.get_size());
  }
  if (plain == preferred) return;
  to_preferred_ = copy_between(plain, preferred);
  to_plain_ = copy_between(preferred, plain);
}

ActivationLayout::ActivationLayout(Dtype stored, const MemoryDesc& plain)
    : ActivationLayout(stored, plain, plain) {}

dnnl::memory ActivationLayout::input(const std::byte* tensor, std::byte* staged) const {
  if (widened_ > 0) widen(stored_, tensor, widened_, reinterpret_cast<float*>(staged));
  dnnl::memory plain = memory_at(plain_, widened_ > 0 ? staged : tensor);
  if (!to_preferred_) return plain;
  dnnl::memory argument = memory_at(preferred_, staged + widened_bytes_);
  to_preferred_->execute({{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, argument}}, nullptr);
  return argument;
}

dnnl::memory ActivationLayout::output(std::byte* tensor, std::byte* staged) const {
  if (to_plain_) return memory_at(preferred_, staged + widened_bytes_);
  return memory_at(plain_, widened_ > 0 ? staged : tensor);
}

void ActivationLayout::finish(std::byte* staged, std::byte* tensor) const {
  if (to_plain_) {
    to_plain_->execute({{DNNL_ARG_FROM, memory_at(preferred_, staged + widened_bytes_)},
                        {DNNL_ARG_TO, memory_at(plain_, widened_ > 0 ? staged : tensor)}},
                       nullptr);
  }
  if (widened_ > 0) narrow(reinterpret_cast<const float*>(staged), widened_, stored_, tensor);
}

}  // namespace lockstep::kernels::onednn
