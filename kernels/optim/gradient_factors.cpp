#include "kernels/optim/gradient_factors.h"

#include "kernels/optim/step_control.h"
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

void larc_factors(Stream& stream,
                  const Tensor& norms,
                  const Tensor& weight_decays,
                  const LarcParams& params,
                  Tensor& factors) {
  const OpCheck check("larc_factors", stream);
  check.rank("factors", factors, 1);
  const int64_t n = factors.numel();
  check.require(n >= 1, "a factor");
  check.require(params.trust > 0, "trust > 0");
  check_control(check, params.control);
  check.like("factors", factors, {n}, Dtype::kF32);
  check.like("norms", norms, {2 * n + 1}, Dtype::kF32);
  check.like("weight_decays", weight_decays, {n}, Dtype::kF32);
  if (check.dry(6 * n, 4 * n * static_cast<int64_t>(sizeof(float)))) return;
  LS_DISPATCH(larc_factors, (stream, norms, weight_decays, params, factors))
}

}  // namespace lockstep::kernels
