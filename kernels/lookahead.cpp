#include "kernels/lookahead.h"

#include "kernels/op_check.h"

namespace lockstep::kernels {

void lookahead_sync(Stream& stream, std::span<LookaheadSlot> slots, float alpha) {
  const OpCheck check("lookahead_sync", stream);
  int64_t numel = 0;
  for (const LookaheadSlot& slot : slots) {
    check.like("param", slot.param, slot.param.shape(), Dtype::kF32);
    check.like("slow", slot.slow, slot.param.shape(), Dtype::kF32);
    numel += slot.param.numel();
  }
  if (check.dry(3 * numel, 4 * numel * static_cast<int64_t>(sizeof(float)))) return;
  LS_DISPATCH_CPU(lookahead_sync, (stream, slots, alpha))
}

}  // namespace lockstep::kernels
