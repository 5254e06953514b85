// Code that the bodies of kernels/optim/larc_factors.h share.
#pragma once

#include "kernels/optim/larc_factors.h"
#include "kernels/optim/step_now.h"
#include "kernels/support/host_device.h"

namespace lockstep::kernels {

struct LarcRule {
  float trust, eps;
  bool clip;
  float lr, grad_factor;
};

LS_HOST_DEVICE LarcRule larc_rule(LarcRule rule, const StepSource& source) {
  const StepNow now = step_now(source, rule.lr, 1);
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
