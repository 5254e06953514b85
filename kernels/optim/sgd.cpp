#include "kernels/optim/sgd.h"

#include "kernels/optim/step_control.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void sgd_step(Stream& stream, std::span<SgdSlot> slots, const SgdParams& params) {
  const OpCheck check("sgd_step", stream);
  const bool has_momentum = params.momentum != 0;
  check.require(!params.nesterov || has_momentum, "momentum != 0 for nesterov");
  check_control(check, params.control);
  int64_t numel = 0;
  size_t bytes = 0;
  for (const SgdSlot& slot : slots) {
    check.like("param", slot.param, slot.param.shape(), Dtype::kF32);
    check_grad(check, slot.grad, slot.param.shape());
    if (has_momentum) check.like("momentum", slot.momentum, slot.param.shape(), Dtype::kF32);
    check_copy(check, slot.copy, slot.param.shape());
    if (slot.factor.defined()) check.like("factor", slot.factor, {1}, Dtype::kF32);
    numel += slot.param.numel();
    bytes += slot.grad.nbytes() + (has_momentum ? 4 : 2) * slot.param.nbytes() + slot.copy.nbytes();
  }
  const int64_t flops = 2 + (params.weight_decay != 0 ? 2 : 0) + (has_momentum ? 2 : 0) +
                        (params.nesterov ? 2 : 0) + (params.control.scales_gradients() ? 1 : 0);
  if (check.dry(flops * numel, static_cast<int64_t>(bytes))) return;
  LS_DISPATCH(sgd_step, (stream, slots, params))
}

}  // namespace lockstep::kernels
