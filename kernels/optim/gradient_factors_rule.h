// Arithmetic of the bodies of kernels/optim/gradient_factors.h.
#pragma once

#include "kernels/optim/gradient_factors.h"
#include "kernels/optim/loss_scale_rule.h"
#include "kernels/optim/step_control_rule.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

LS_HOST_DEVICE float clip_factor_of(float norm, float max_norm, const LossScaleState* state) {
  if (state != nullptr) norm /= state->scale;
  const float factor = max_norm / (norm + 1e-6F);
  return factor > 1 ? 1 : factor;
}

struct LarcRule {
  float trust, eps;
  bool clip;
  float lr, grad_factor;
};

[[gnu::always_inline]] inline LarcRule rule_of(const LarcParams& params) {
  return {params.trust, params.eps, params.clip, static_cast<float>(params.lr), 1};
}

LS_HOST_DEVICE LarcRule larc_rule(LarcRule rule, const StepSource& source) {
  const StepNow now = step_now(source, 1);
  rule.lr = static_cast<float>(now.lr);
  rule.grad_factor = now.grad_factor;
  return rule;
}

LS_HOST_DEVICE float larc_factor(const LarcRule& rule,
                                 float param_norm,
                                 float scaled_grad_norm,
                                 float weight_decay) {
  const float grad_norm = scaled_grad_norm * rule.grad_factor;
  if (grad_norm == 0) return 0;
  if (param_norm == 0) return 1;
  const float rate = rule.trust * param_norm / (grad_norm + param_norm * weight_decay + rule.eps);
  if (!rule.clip) return rate;
  const float part = rate / rule.lr;
  return part > 1 ? 1 : part;
}

}  // namespace lockstep::kernels
