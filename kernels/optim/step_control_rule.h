// How the bodies of optimizers read kernels/optim/step_control.h.
#pragma once

#include <bit>

#include "kernels/optim/loss_scale_rule.h"
#include "kernels/optim/step_control.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct StepSource {
  const LossScaleState* state;  // null: the step's number is step_now()'s argument
  const int64_t* lrs;           // null: use `lr`
  int64_t lr_count;
  const float* grad_factor;  // null: 1
  double lr, lr_factor;
  bool unscales;
};

[[gnu::always_inline]] inline StepSource source_of(const StepControl& control, double lr) {
  StepSource source{.state = state_in(control.state),
                    .lrs = nullptr,
                    .lr_count = 0,
                    .grad_factor = nullptr,
                    .lr = lr,
                    .lr_factor = control.lr_factor,
                    .unscales = control.unscales};
  if (control.lr_table.defined()) {
    source.lrs = control.lr_table.data<int64_t>();
    source.lr_count = control.lr_table.numel();
  }
  if (control.grad_factor.defined()) source.grad_factor = control.grad_factor.data<float>();
  return source;
}

struct StepNow {
  bool skip;
  float grad_factor;  // gradients are multiplied by it
  double lr;
  int64_t step;  // counts from 1
};

LS_HOST_DEVICE StepNow step_now(const StepSource& source, int64_t step) {
  const float factor = source.grad_factor == nullptr ? 1 : *source.grad_factor;
  double lr = source.lr;
  if (source.state == nullptr) return {false, factor, lr * source.lr_factor, step};
  const LossScaleState& state = *source.state;
  if (source.lrs != nullptr) {
    const int64_t last = source.lr_count - 1;
    lr = std::bit_cast<double>(source.lrs[state.applied < last ? state.applied : last]);
  }
  const float unscale = source.unscales ? 1 / state.scale : 1;
  return {state.found_inf != 0, unscale * factor, lr * source.lr_factor, state.applied + 1};
}

}  // namespace lockstep::kernels
