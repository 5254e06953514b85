#include "kernels/adam.h"

#include "kernels/op_check.h"

namespace lockstep::kernels {

void adam_step(Stream& stream, std::span<AdamSlot> slots, const AdamParams& params, int64_t step) {
  const OpCheck check("adam_step", stream);
  check.require(step >= 1, "step >= 1");
  int64_t numel = 0;
  for (const AdamSlot& slot : slots) {
    check.like("param", slot.param, slot.param.shape(), Dtype::kF32);
    check.like("grad", slot.grad, slot.param.shape(), Dtype::kF32);
    check.like("exp_avg", slot.exp_avg, slot.param.shape(), Dtype::kF32);
    check.like("exp_avg_sq", slot.exp_avg_sq, slot.param.shape(), Dtype::kF32);
    numel += slot.param.numel();
  }
  const int64_t decay_flops = params.weight_decay == 0 ? 0 : (params.decoupled ? 1 : 2);
  constexpr int64_t kFlops = 13;
  constexpr int64_t kFloats = 7;  // grad is read, the others are read and written
  if (check.dry((kFlops + decay_flops) * numel,
                kFloats * numel * static_cast<int64_t>(sizeof(float)))) {
    return;
  }
  LS_DISPATCH_CPU(adam_step, (stream, slots, params, step))
}

}  // namespace lockstep::kernels
