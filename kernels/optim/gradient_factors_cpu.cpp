#include "kernels/optim/gradient_factors_rule.h"

namespace lockstep::kernels::LS_CPU {

void clip_factor(
    Stream&, const Tensor& norms, float max_norm, const Tensor& state, Tensor& factor) {
  *factor.data<float>() = clip_factor_of(norms.span<float>().back(), max_norm, state_in(state));
}

void larc_factors(Stream&,
                  const Tensor& norms,
                  const Tensor& weight_decays,
                  const LarcParams& params,
                  Tensor& factors) {
  const LarcRule rule = larc_rule(rule_of(params), source_of(params.control, params.lr));
  const int64_t n = factors.numel();
  const float* norm = norms.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    factors.data<float>()[i] =
        larc_factor(rule, norm[i], norm[n + i], weight_decays.data<float>()[i]);
  }
}

}  // namespace lockstep::kernels::LS_CPU
