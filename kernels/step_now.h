// kernels/step_control.h as the bodies of optimizers read it.
#pragma once

#include <bit>

#include "kernels/host_device.h"
#include "kernels/loss_scale_rule.h"
#include "kernels/step_control.h"

namespace lockstep::kernels {

struct StepSource {
  const LossScaleState* state;  // null: step_now gives its arguments back
  const int64_t* lrs;
  int64_t lr_count;
};

[[gnu::always_inline]] inline StepSource source_of(const StepControl& control) {
  const LossScaleState* state = state_in(control.state);
  if (!control.lr_table.defined()) return {state, nullptr, 0};
  return {state, control.lr_table.data<int64_t>(), control.lr_table.numel()};
}

struct StepNow {
  bool skip;
  float unscale;  // factor of gradients
  double lr;
  int64_t step;  // counts from 1
};

LS_HOST_DEVICE StepNow step_now(const StepSource& source, double lr, int64_t step) {
  if (source.state == nullptr) return {false, 1, lr, step};
  const LossScaleState& state = *source.state;
  if (source.lrs != nullptr) {
    const int64_t last = source.lr_count - 1;
    lr = std::bit_cast<double>(source.lrs[state.applied < last ? state.applied : last]);
  }
  return {state.found_inf != 0, 1 / state.scale, lr, state.applied + 1};
}

}  // namespace lockstep::kernels
