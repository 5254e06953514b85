// One thread. Traffic: two floats and the scale. Bound: a launch's time.
#include "core/cuda/launch.h"
#include "kernels/optim/clip_factor.h"
#include "kernels/optim/clip_factor_rule.h"

namespace lockstep::kernels::cuda {
namespace {

__global__ void __launch_bounds__(32) clip_factor_kernel(const float* norm,
                                                         float max_norm,
                                                         const LossScaleState* state,
                                                         float* factor) {
  if (threadIdx.x == 0) *factor = clip_factor_of(*norm, max_norm, state);
}

}  // namespace

void clip_factor(
    Stream& stream, const Tensor& norms, float max_norm, const Tensor& state, Tensor& factor) {
  lockstep::cuda::launch(stream,
                         "clip_factor",
                         {1, 32},
                         clip_factor_kernel,
                         norms.data<float>() + norms.numel() - 1,
                         max_norm,
                         state_in(state),
                         factor.data<float>());
}

}  // namespace lockstep::kernels::cuda
