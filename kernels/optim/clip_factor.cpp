#include "kernels/optim/clip_factor.h"

#include "kernels/optim/optimizer_check.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void clip_factor(
    Stream& stream, const Tensor& norms, float max_norm, const Tensor& state, Tensor& factor) {
  const OpCheck check("clip_factor", stream);
  check.rank("norms", norms, 1);
  check.dtype("norms", norms, {Dtype::kF32});
  check.require(norms.numel() >= 1, "a norm");
  check.require(max_norm > 0, "max_norm > 0");
  check_step_state(check, state);
  check.like("factor", factor, {1}, Dtype::kF32);
  if (check.dry(3, static_cast<int64_t>(2 * sizeof(float) + state.nbytes()))) return;
  LS_DISPATCH(clip_factor, (stream, norms, max_norm, state, factor))
}

}  // namespace lockstep::kernels
