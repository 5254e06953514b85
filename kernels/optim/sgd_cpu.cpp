#include "kernels/optim/multi_tensor.h"
#include "kernels/optim/sgd_rule.h"
#include "kernels/optim/step_control_rule.h"

namespace lockstep::kernels::LS_CPU {
namespace {

void update(const float* __restrict grad, float* __restrict param, int64_t n, const SgdRule& by) {
  const SgdRule rule = by;
  for (int64_t i = 0; i < n; ++i)
    param[i] = next_param(rule, param[i], decayed(rule, grad[i], param[i]));
}

void update_with_momentum(const float* __restrict grad,
                          float* __restrict param,
                          float* __restrict buffer,
                          int64_t n,
                          const SgdRule& by) {
  const SgdRule rule = by;
  for (int64_t i = 0; i < n; ++i) {
    const float g = decayed(rule, grad[i], param[i]);
    const float buf = next_momentum(rule, g, buffer[i]);
    buffer[i] = buf;
    param[i] = next_param(rule, param[i], g, buf);
  }
}

}  // namespace

void sgd_step(Stream& stream, std::span<SgdSlot> slots, const SgdParams& params) {
  const StepNow now = step_now(source_of(params.control, params.lr), 1);
  if (now.skip) return;
  SgdRule common = rule_of(params);
  common.lr = static_cast<float>(now.lr);
  for_slot_blocks(stream, slots, [&](SgdSlot& slot, int64_t first, int64_t count) {
    float scratch[kSlotBlock];
    const float* grad = unscaled(slot.grad, first, count, now.grad_factor, scratch);
    float* param = slot.param.data<float>() + first;
    SgdRule rule = common;
    if (slot.factor.defined()) rule.factor = *slot.factor.data<float>();
    if (rule.momentum == 0) {
      update(grad, param, count, rule);
    } else {
      update_with_momentum(grad, param, slot.momentum.data<float>() + first, count, rule);
    }
    write_copy(slot.param, first, count, slot.copy);
  });
}

}  // namespace lockstep::kernels::LS_CPU
