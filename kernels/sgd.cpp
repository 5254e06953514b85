#include "kernels/sgd.h"

#include "kernels/op_check.h"

namespace lockstep::kernels {

void sgd_step(Stream& stream, std::span<SgdSlot> slots, const SgdParams& params) {
  const OpCheck check("sgd_step", stream);
  const bool has_momentum = params.momentum != 0;
  check.require(!params.nesterov || has_momentum, "momentum != 0 for nesterov");
  int64_t numel = 0;
  for (const SgdSlot& slot : slots) {
    check.like("param", slot.param, slot.param.shape(), Dtype::kF32);
    check.like("grad", slot.grad, slot.param.shape(), Dtype::kF32);
    if (has_momentum) check.like("momentum", slot.momentum, slot.param.shape(), Dtype::kF32);
    numel += slot.param.numel();
  }
  const int64_t flops =
      2 + (params.weight_decay != 0 ? 2 : 0) + (has_momentum ? 2 : 0) + (params.nesterov ? 2 : 0);
  const int64_t floats = has_momentum ? 5 : 3;  // param and momentum are read and written
  if (check.dry(flops * numel, floats * numel * static_cast<int64_t>(sizeof(float)))) return;
  LS_DISPATCH_CPU(sgd_step, (stream, slots, params))
}

}  // namespace lockstep::kernels
