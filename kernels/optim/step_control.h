// Values that an optimizer's step reads on the device, so that the host need not know which steps
// of a loss-scaled training were applied.
#pragma once

#include <span>

#include "core/tensor.h"

namespace lockstep::kernels {

class OpCheck;

// All tensors are on the stream's device. With a state, gradients are multiplied by 1 / scale, a
// step while found_inf is set changes nothing, and the step's number is applied + 1.
struct StepControl {
  Tensor state = {};  // kernels/optim/loss_scale.h; undefined: the host decides
  // Only with a state: (N), N >= 1, from lr_table_of(). Undefined: the learning rate is params.lr.
  Tensor lr_table = {};
  Tensor grad_factor = {};  // (1), f32: gradients are also multiplied by it; undefined: 1
  double lr_factor = 1;     // multiplies the learning rate, also the table's
  bool unscales = true;     // false: gradients are not multiplied by 1 / scale

  bool scales_gradients() const { return state.defined() || grad_factor.defined(); }
};

// Makes a learning-rate table on the CPU, for upload: step t has the learning rate lrs[min(t, N) -
// 1]. As there is no f64 dtype, the tensor is i64 and holds the bits of doubles.
Tensor lr_table_of(std::span<const double> lrs);

// Argument checks that optimizers share. Each Errors: ShapeError, DtypeError, DeviceError.
void check_grad(const OpCheck& check, const Tensor& grad, const Shape& shape);
void check_copy(const OpCheck& check, const Tensor& copy, const Shape& shape);
void check_step_state(const OpCheck& check, const Tensor& state);
// ShapeError also for a learning-rate table without a state.
void check_control(const OpCheck& check, const StepControl& control);

}  // namespace lockstep::kernels
