// Arithmetic of the bodies of kernels/optim/lookahead.h. Spec: tests/reference/lookahead.h
#pragma once

#include "kernels/optim/lookahead.h"
#include "kernels/optim/loss_scale_rule.h"
#include "kernels/support/host_device.h"

namespace lockstep::kernels {

enum class LookaheadAction : uint8_t { kNothing, kBegin, kMeet };

LS_HOST_DEVICE LookaheadAction lookahead_action(const LossScaleState* state,
                                                int64_t k,
                                                int64_t begin) {
  if (state == nullptr) return LookaheadAction::kMeet;
  if (state->found_inf != 0) return LookaheadAction::kNothing;
  const int64_t since = state->applied + 1 - begin;
  if (since == 0) return LookaheadAction::kBegin;
  return since > 0 && since % k == 0 ? LookaheadAction::kMeet : LookaheadAction::kNothing;
}

LS_HOST_DEVICE float interpolated(float param, float slow, float alpha) {
  return slow + (param - slow) * alpha;
}

}  // namespace lockstep::kernels
