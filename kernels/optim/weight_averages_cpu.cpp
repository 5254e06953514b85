#include "kernels/optim/multi_tensor.h"
#include "kernels/optim/weight_averages_rule.h"

namespace lockstep::kernels::LS_CPU {
namespace {

void average(const float* __restrict value, float* __restrict ema, int64_t n, const EmaNow& now) {
  const EmaNow rule = now;
  for (int64_t i = 0; i < n; ++i) ema[i] = averaged(rule, value[i], ema[i]);
}

void synchronize(float* __restrict param, float* __restrict slow, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) {
    const float both = interpolated(param[i], slow[i], alpha);
    slow[i] = both;
    param[i] = both;
  }
}

}  // namespace

void ema_update(Stream& stream, std::span<EmaSlot> slots, const EmaParams& params) {
  const EmaNow now = ema_now(params.decay, params.step, state_in(params.state));
  if (now.skip) return;
  for_slots(stream, slots, [&](EmaSlot& slot, int64_t first, int64_t count) {
    average(slot.param.data<float>() + first, slot.ema.data<float>() + first, count, now);
  });
}

void lookahead_sync(Stream& stream, std::span<LookaheadSlot> slots, const LookaheadParams& params) {
  const LookaheadNow now = lookahead_now(rule_of(params), state_in(params.state));
  if (now.action == LookaheadAction::kNothing) return;
  for_slot_blocks(stream, slots, [&](LookaheadSlot& slot, int64_t first, int64_t count) {
    float* param = slot.param.data<float>() + first;
    float* slow = slot.slow.data<float>() + first;
    if (now.action == LookaheadAction::kBegin) {
      std::copy(param, param + count, slow);
    } else {
      synchronize(param, slow, count, now.alpha);
      write_copy(slot.param, first, count, slot.copy);
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
