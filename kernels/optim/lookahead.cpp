#include "kernels/optim/lookahead.h"

#include "kernels/optim/optimizer_check.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void lookahead_sync(Stream& stream, std::span<LookaheadSlot> slots, const LookaheadParams& params) {
  const OpCheck check("lookahead_sync", stream);
  check_step_state(check, params.state);
  check.require(params.k >= 1, "k >= 1");
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
