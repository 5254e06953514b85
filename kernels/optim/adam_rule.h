// Arithmetic of one element for the bodies of kernels/optim/adam.h. Spec: tests/reference/adam.h
#pragma once

#include <cmath>

#include "kernels/optim/adam.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct AdamRule {
  double beta1, beta2, eps, weight_decay;
  bool decoupled;
};

[[gnu::always_inline]] inline AdamRule rule_of(const AdamParams& params) {
  return {params.beta1, params.beta2, params.eps, params.weight_decay, params.decoupled};
}

// Factors that are the same for all elements of a step.
struct AdamFactors {
  float keep;   // param is multiplied by it: decoupled weight decay
  float decay;  // decay * param is added to the gradient
  float one_minus_beta1, beta2, one_minus_beta2;
  float sqrt_correction2, eps, minus_step_size;
};

// By repeated squaring, for the same bits on every device; no library promises that for pow().
LS_HOST_DEVICE double power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

LS_HOST_DEVICE AdamFactors adam_factors(const AdamRule& rule, double lr, int64_t step) {
  const double correction1 = 1 - power(rule.beta1, step);
  const double correction2 = 1 - power(rule.beta2, step);
  return {.keep = static_cast<float>(rule.decoupled ? 1 - lr * rule.weight_decay : 1),
          .decay = rule.decoupled ? 0 : static_cast<float>(rule.weight_decay),
          .one_minus_beta1 = static_cast<float>(1 - rule.beta1),
          .beta2 = static_cast<float>(rule.beta2),
          .one_minus_beta2 = static_cast<float>(1 - rule.beta2),
          .sqrt_correction2 = static_cast<float>(std::sqrt(correction2)),
          .eps = static_cast<float>(rule.eps),
          .minus_step_size = static_cast<float>(-(lr / correction1))};
}

LS_HOST_DEVICE void adam_update(
    const AdamFactors& f, float grad, float& param, float& exp_avg, float& exp_avg_sq) {
  const float kept = param * f.keep;
  const float g = f.decay != 0 ? grad + f.decay * kept : grad;
  exp_avg = exp_avg + f.one_minus_beta1 * (g - exp_avg);
  exp_avg_sq = exp_avg_sq * f.beta2 + f.one_minus_beta2 * g * g;
  const float denominator = std::sqrt(exp_avg_sq) / f.sqrt_correction2 + f.eps;
  param = kept + f.minus_step_size * exp_avg / denominator;
}

}  // namespace lockstep::kernels
