// Specification of kernels/optim/adam.h in double, one element at a time.
#pragma once

#include <cmath>

namespace lockstep::reference {

struct AdamElement {
  double param, exp_avg, exp_avg_sq;
};

struct AdamRule {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;
};

inline AdamElement adam_step(AdamElement at, double grad, const AdamRule& rule, double step) {
  double g = grad;
  if (rule.decoupled) {
    at.param -= rule.lr * rule.weight_decay * at.param;
  } else {
    g += rule.weight_decay * at.param;
  }
  at.exp_avg = rule.beta1 * at.exp_avg + (1 - rule.beta1) * g;
  at.exp_avg_sq = rule.beta2 * at.exp_avg_sq + (1 - rule.beta2) * g * g;
  const double mean = at.exp_avg / (1 - std::pow(rule.beta1, step));
  const double square = at.exp_avg_sq / (1 - std::pow(rule.beta2, step));
  at.param -= rule.lr * mean / (std::sqrt(square) + rule.eps);
  return at;
}

}  // namespace lockstep::reference
