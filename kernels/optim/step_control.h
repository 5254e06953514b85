// Values that an optimizer's step reads on the device, so that the host need not know which steps
// of a loss-scaled training were applied.
#pragma once

#include <span>

#include "core/tensor.h"

namespace lockstep::kernels {

class OpCheck;

// All on the stream's device. With a state gradients are multiplied by 1 / scale, and while
// found_inf is set nothing is changed at all; the step's number is applied + 1.
struct StepControl {
  Tensor state = {};  // kernels/optim/loss_scale.h; undefined: the host decides
  // With a state: (N), N >= 1, of lr_table_of; undefined: the learning rate is params.lr.
  Tensor lr_table = {};
  Tensor grad_factor = {};  // (1), f32: gradients are multiplied by it too; undefined: by 1
  double lr_factor = 1;     // the learning rate, the table's too, is multiplied by it
  bool unscales = true;     // false: gradients are taken as they are, whatever the state's scale

  bool scales_gradients() const { return state.defined() || grad_factor.defined(); }
};

// On the CPU, to be uploaded: step t learns at lrs[min(t, N) - 1]. There is no f64 dtype: the
// tensor is i64 and holds the bits of doubles.
Tensor lr_table_of(std::span<const double> lrs);

// Argument checks that optimizers share. Each Errors: ShapeError, DtypeError, DeviceError.
void check_grad(const OpCheck& check, const Tensor& grad, const Shape& shape);
void check_copy(const OpCheck& check, const Tensor& copy, const Shape& shape);
void check_step_state(const OpCheck& check, const Tensor& state);
// ShapeError also for a learning-rate table without a state.
void check_control(const OpCheck& check, const StepControl& control);

}  // namespace lockstep::kernels
