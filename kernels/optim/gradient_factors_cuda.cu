// clip_factor: one thread; two floats and the scale. larc_factors: one thread per tensor; 16 bytes
// per tensor. Bound of both: launch latency.
#include "core/cuda/launch.h"
#include "core/round_up.h"
#include "kernels/optim/gradient_factors_rule.h"

namespace lockstep::kernels::cuda {
namespace {

__global__ void __launch_bounds__(32) clip_factor_kernel(const float* norm,
                                                         float max_norm,
                                                         const LossScaleState* state,
                                                         float* factor) {
  if (threadIdx.x == 0) *factor = clip_factor_of(*norm, max_norm, state);
}

constexpr int kLarcThreads = 128;

__global__ void __launch_bounds__(kLarcThreads) larc_factors_kernel(const float* norms,
                                                                    const float* weight_decays,
                                                                    int64_t n,
                                                                    LarcRule rule,
                                                                    StepSource source,
                                                                    float* factors) {
  const int64_t i = int64_t{blockIdx.x} * kLarcThreads + threadIdx.x;
  if (i >= n) return;
  factors[i] = larc_factor(larc_rule(rule, source), norms[i], norms[n + i], weight_decays[i]);
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

void larc_factors(Stream& stream,
                  const Tensor& norms,
                  const Tensor& weight_decays,
                  const LarcParams& params,
                  Tensor& factors) {
  const int64_t n = factors.numel();
  lockstep::cuda::launch(stream,
                         "larc_factors",
                         {static_cast<unsigned>(ceil_div<int64_t>(n, kLarcThreads)), kLarcThreads},
                         larc_factors_kernel,
                         norms.data<float>(),
                         weight_decays.data<float>(),
                         n,
                         rule_of(params),
                         source_of(params.control, params.lr),
                         factors.data<float>());
}

}  // namespace lockstep::kernels::cuda
