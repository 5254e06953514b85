#include "kernels/optim/weight_averages.h"

#include "kernels/optim/step_control.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void ema_update(Stream& stream, std::span<EmaSlot> slots, const EmaParams& params) {
  const OpCheck check("ema_update", stream);
  check_step_state(check, params.state);
  check.require(params.decay >= 0 && params.decay < 1, "0 <= decay < 1");
  check.require(params.step >= 1, "step >= 1");
  int64_t numel = 0;
  for (const EmaSlot& slot : slots) {
    check.like("param", slot.param, slot.param.shape(), Dtype::kF32);
    check.like("ema", slot.ema, slot.param.shape(), Dtype::kF32);
    numel += slot.param.numel();
  }
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  if (check.dry(3 * numel, 3 * numel * kFloat)) return;
  LS_DISPATCH(ema_update, (stream, slots, params))
}

void lookahead_sync(Stream& stream, std::span<LookaheadSlot> slots, const LookaheadParams& params) {
  const OpCheck check("lookahead_sync", stream);
  check_step_state(check, params.state);
  check.require(params.k >= 1, "k >= 1");
  check.require(params.step >= 1 && params.total >= 0, "step >= 1 and total >= 0");
  int64_t numel = 0;
  size_t bytes = 0;
  for (const LookaheadSlot& slot : slots) {
    check.like("param", slot.param, slot.param.shape(), Dtype::kF32);
    check.like("slow", slot.slow, slot.param.shape(), Dtype::kF32);
    check_copy(check, slot.copy, slot.param.shape());
    numel += slot.param.numel();
    bytes += 4 * slot.param.nbytes() + slot.copy.nbytes();
  }
  if (check.dry(3 * numel, static_cast<int64_t>(bytes))) return;
  LS_DISPATCH(lookahead_sync, (stream, slots, params))
}

}  // namespace lockstep::kernels
