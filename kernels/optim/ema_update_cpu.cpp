#include "kernels/optim/ema_update_rule.h"
#include "kernels/optim/multi_tensor.h"

namespace lockstep::kernels::LS_CPU {
namespace {

void average(const float* __restrict value, float* __restrict ema, int64_t n, const EmaNow& now) {
  const EmaNow rule = now;
  for (int64_t i = 0; i < n; ++i) ema[i] = averaged(rule, value[i], ema[i]);
}

}  // namespace

void ema_update(Stream& stream, std::span<EmaSlot> slots, const EmaParams& params) {
  const EmaNow now = ema_now(params.decay, params.step, state_in(params.state));
  if (now.skip) return;
  for_slots(stream, slots, [&](EmaSlot& slot, int64_t first, int64_t count) {
    average(slot.param.data<float>() + first, slot.ema.data<float>() + first, count, now);
  });
}

}  // namespace lockstep::kernels::LS_CPU
