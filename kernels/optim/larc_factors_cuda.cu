// One thread a tensor. Traffic: 16 bytes a tensor. Bound: a launch's time.
#include "core/cuda/launch.h"
#include "kernels/optim/larc_factors.h"
#include "kernels/optim/larc_factors_rule.h"

namespace lockstep::kernels::cuda {
namespace {

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

void larc_factors(Stream& stream,
                  const Tensor& norms,
                  const Tensor& weight_decays,
                  const LarcParams& params,
                  Tensor& factors) {
  const int64_t n = factors.numel();
  const LarcRule rule = {params.trust, params.eps, params.clip, params.lr, 1};
  lockstep::cuda::launch(
      stream,
      "larc_factors",
      {static_cast<unsigned>((n + kLarcThreads - 1) / kLarcThreads), kLarcThreads},
      larc_factors_kernel,
      norms.data<float>(),
      weight_decays.data<float>(),
      n,
      rule,
      source_of(params.control),
      factors.data<float>());
}

}  // namespace lockstep::kernels::cuda
