#include "kernels/optim/adam.h"

#include "kernels/optim/step_control.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void adam_step(Stream& stream, std::span<AdamSlot> slots, const AdamParams& params, int64_t step) {
  const OpCheck check("adam_step", stream);
  check_control(check, params.control);
  check.require(params.control.state.defined() || step >= 1, "step >= 1");
  int64_t numel = 0;
  size_t bytes = 0;
  for (const AdamSlot& slot : slots) {
    check.like("param", slot.param, slot.param.shape(), Dtype::kF32);
    check_grad(check, slot.grad, slot.param.shape());
    check.like("exp_avg", slot.exp_avg, slot.param.shape(), Dtype::kF32);
    check.like("exp_avg_sq", slot.exp_avg_sq, slot.param.shape(), Dtype::kF32);
    check_copy(check, slot.copy, slot.param.shape());
    numel += slot.param.numel();
    bytes += slot.grad.nbytes() + 6 * slot.param.nbytes() + slot.copy.nbytes();
  }
  const int64_t decay_flops = params.weight_decay == 0 ? 0 : (params.decoupled ? 1 : 2);
  const int64_t flops = 13 + decay_flops + (params.control.scales_gradients() ? 1 : 0);
  if (check.dry(flops * numel, static_cast<int64_t>(bytes))) return;
  LS_DISPATCH(adam_step, (stream, slots, params, step))
}

}  // namespace lockstep::kernels
