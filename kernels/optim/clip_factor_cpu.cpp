#include "kernels/optim/clip_factor.h"
#include "kernels/optim/clip_factor_rule.h"

namespace lockstep::kernels::LS_CPU {

void clip_factor(
    Stream&, const Tensor& norms, float max_norm, const Tensor& state, Tensor& factor) {
  *factor.data<float>() = clip_factor_of(norms.span<float>().back(), max_norm, state_in(state));
}

}  // namespace lockstep::kernels::LS_CPU
