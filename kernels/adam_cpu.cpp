#include <cmath>

#include "kernels/adam.h"
#include "kernels/multi_tensor.h"

namespace lockstep::kernels::LS_CPU {
namespace {

struct Factors {
  float keep;   // of param, by decoupled decay
  float decay;  // of param, added to the gradient
  float one_minus_beta1, beta2, one_minus_beta2;
  float sqrt_correction2, eps, minus_step_size;
};

Factors factors_of(const AdamParams& params, int64_t step) {
  const auto t = static_cast<double>(step);
  const double correction1 = 1 - std::pow(params.beta1, t);
  const double correction2 = 1 - std::pow(params.beta2, t);
  const double keep = params.decoupled ? 1 - params.lr * params.weight_decay : 1;
  return {.keep = static_cast<float>(keep),
          .decay = params.decoupled ? 0 : static_cast<float>(params.weight_decay),
          .one_minus_beta1 = static_cast<float>(1 - params.beta1),
          .beta2 = static_cast<float>(params.beta2),
          .one_minus_beta2 = static_cast<float>(1 - params.beta2),
          .sqrt_correction2 = static_cast<float>(std::sqrt(correction2)),
          .eps = static_cast<float>(params.eps),
          .minus_step_size = static_cast<float>(-(params.lr / correction1))};
}

void update(const float* __restrict grad,
            float* __restrict param,
            float* __restrict exp_avg,
            float* __restrict exp_avg_sq,
            int64_t n,
            const Factors& factors) {
  const Factors f = factors;
  const bool decays = f.decay != 0;
  for (int64_t i = 0; i < n; ++i) {
    const float kept = param[i] * f.keep;
    const float g = decays ? grad[i] + f.decay * kept : grad[i];
    const float mean = exp_avg[i] + f.one_minus_beta1 * (g - exp_avg[i]);
    const float square = exp_avg_sq[i] * f.beta2 + f.one_minus_beta2 * g * g;
    const float denominator = std::sqrt(square) / f.sqrt_correction2 + f.eps;
    exp_avg[i] = mean;
    exp_avg_sq[i] = square;
    param[i] = kept + f.minus_step_size * mean / denominator;
  }
}

}  // namespace

void adam_step(Stream& stream, std::span<AdamSlot> slots, const AdamParams& params, int64_t step) {
  const Factors factors = factors_of(params, step);
  for_slots(stream, slots, [&](AdamSlot& slot, int64_t first, int64_t count) {
    update(slot.grad.data<float>() + first,
           slot.param.data<float>() + first,
           slot.exp_avg.data<float>() + first,
           slot.exp_avg_sq.data<float>() + first,
           count,
           factors);
  });
}

}  // namespace lockstep::kernels::LS_CPU
