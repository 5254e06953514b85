#include "kernels/optim/adam_rule.h"
#include "kernels/optim/multi_tensor.h"
#include "kernels/optim/step_control_rule.h"

namespace lockstep::kernels::LS_CPU {
namespace {

void update(const float* __restrict grad,
            float* __restrict param,
            float* __restrict exp_avg,
            float* __restrict exp_avg_sq,
            int64_t n,
            const AdamFactors& by) {
  const AdamFactors factors = by;
  for (int64_t i = 0; i < n; ++i)
    adam_update(factors, grad[i], param[i], exp_avg[i], exp_avg_sq[i]);
}

}  // namespace

void adam_step(Stream& stream, std::span<AdamSlot> slots, const AdamParams& params, int64_t step) {
  const StepNow now = step_now(source_of(params.control, params.lr), step);
  if (now.skip) return;
  const AdamFactors factors = adam_factors(rule_of(params), now.lr, now.step);
  for_slot_blocks(stream, slots, [&](AdamSlot& slot, int64_t first, int64_t count) {
    float scratch[kSlotBlock];
    update(unscaled(slot.grad, first, count, now.grad_factor, scratch),
           slot.param.data<float>() + first,
           slot.exp_avg.data<float>() + first,
           slot.exp_avg_sq.data<float>() + first,
           count,
           factors);
    write_copy(slot.param, first, count, slot.copy);
  });
}

}  // namespace lockstep::kernels::LS_CPU
