// Code that the bodies of kernels/optim/loss_scale.h share. Spec: tests/reference/loss_scale.h
#pragma once

#include "kernels/optim/loss_scale.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Null for a tensor that is not defined.
[[gnu::always_inline]] inline LossScaleState* state_in(Tensor& state) {
  return reinterpret_cast<LossScaleState*>(state.bytes());
}
[[gnu::always_inline]] inline const LossScaleState* state_in(const Tensor& state) {
  return reinterpret_cast<const LossScaleState*>(state.bytes());
}

LS_HOST_DEVICE void end_step(LossScaleState& state, const LossScaleRule& rule) {
  constexpr float kLargest = 3.402823466e38F;
  const bool skip = state.found_inf != 0;
  state.found_inf = 0;
  state.consecutive_skips = skip ? state.consecutive_skips + 1 : 0;
  state.applied += skip ? 0 : 1;
  state.skipped += skip ? 1 : 0;
  if (!rule.dynamic) return;
  state.growth_tracker = skip ? 0 : state.growth_tracker + 1;
  if (skip) {
    const auto lower = static_cast<float>(state.scale * rule.backoff_factor);
    state.scale = lower < rule.min_scale ? rule.min_scale : lower;
  } else if (state.growth_tracker == rule.growth_interval) {
    const auto higher = static_cast<float>(state.scale * rule.growth_factor);
    if (higher <= kLargest) state.scale = higher;
    state.growth_tracker = 0;
  }
}

}  // namespace lockstep::kernels
