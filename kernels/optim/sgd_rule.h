// Arithmetic of one element for the bodies of kernels/optim/sgd.h. Spec: tests/reference/sgd.h
#pragma once

#include "kernels/optim/sgd.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct SgdRule {
  float lr, momentum, weight_decay, factor;
  bool nesterov;
};

[[gnu::always_inline]] inline SgdRule rule_of(const SgdParams& params) {
  return {static_cast<float>(params.lr), params.momentum, params.weight_decay, 1, params.nesterov};
}

LS_HOST_DEVICE float decayed(const SgdRule& rule, float grad, float param) {
  return (rule.weight_decay != 0 ? grad + rule.weight_decay * param : grad) * rule.factor;
}
LS_HOST_DEVICE float next_momentum(const SgdRule& rule, float g, float buf) {
  return rule.momentum * buf + g;
}
// With momentum: `buf` is the new one.
LS_HOST_DEVICE float next_param(const SgdRule& rule, float param, float g, float buf) {
  return param - rule.lr * (rule.nesterov ? g + rule.momentum * buf : buf);
}
LS_HOST_DEVICE float next_param(const SgdRule& rule, float param, float g) {
  return param - rule.lr * g;
}

}  // namespace lockstep::kernels
