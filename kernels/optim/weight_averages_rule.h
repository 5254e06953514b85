// Arithmetic of the bodies of kernels/optim/weight_averages.h.
#pragma once

#include "kernels/optim/loss_scale_rule.h"
#include "kernels/optim/weight_averages.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct EmaNow {
  float keep, take;  // mu, 1 - mu
  bool skip;
};

LS_HOST_DEVICE EmaNow ema_now(double decay, int64_t step, const LossScaleState* state) {
  if (state != nullptr) step = state->applied + 1;
  const double warm = static_cast<double>(1 + step) / static_cast<double>(10 + step);
  const double mu = warm < decay ? warm : decay;
  return {static_cast<float>(mu),
          static_cast<float>(1 - mu),
          state != nullptr && state->found_inf != 0};
}

LS_HOST_DEVICE float averaged(const EmaNow& now, float value, float ema) {
  return value == ema ? ema : now.keep * ema + now.take * value;
}

enum class LookaheadAction : uint8_t { kNothing, kBegin, kSynchronize };

struct LookaheadRule {
  double alpha;
  int64_t k, begin, step, total;
};

[[gnu::always_inline]] inline LookaheadRule rule_of(const LookaheadParams& params) {
  return {params.alpha, params.k, params.begin, params.step, params.total};
}

struct LookaheadNow {
  LookaheadAction action;
  float alpha;
};

LS_HOST_DEVICE LookaheadAction lookahead_action(const LookaheadRule& rule,
                                                const LossScaleState* state) {
  if (state == nullptr) return LookaheadAction::kSynchronize;
  if (state->found_inf != 0) return LookaheadAction::kNothing;
  const int64_t since = state->applied + 1 - rule.begin;
  if (since == 0) return LookaheadAction::kBegin;
  return since > 0 && since % rule.k == 0 ? LookaheadAction::kSynchronize
                                          : LookaheadAction::kNothing;
}

LS_HOST_DEVICE LookaheadNow lookahead_now(const LookaheadRule& rule, const LossScaleState* state) {
  double alpha = rule.alpha;
  if (rule.total > 0) {
    const int64_t step = state == nullptr ? rule.step : state->applied + 1;
    const double part = static_cast<double>(step) / static_cast<double>(rule.total);
    alpha = 1 - (1 - alpha) * (part * part * part);
  }
  return {lookahead_action(rule, state), static_cast<float>(alpha)};
}

LS_HOST_DEVICE float interpolated(float param, float slow, float alpha) {
  return slow + (param - slow) * alpha;
}

}  // namespace lockstep::kernels
