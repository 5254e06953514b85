// Argument checks that optimizers share.
#pragma once

#include "kernels/optim/step_control.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

// Each Errors: ShapeError, DtypeError, DeviceError.
void check_grad(const OpCheck& check, const Tensor& grad, const Shape& shape);
void check_copy(const OpCheck& check, const Tensor& copy, const Shape& shape);
void check_step_state(const OpCheck& check, const Tensor& state);
// ShapeError also for a learning-rate table without a state.
void check_control(const OpCheck& check, const StepControl& control);

}  // namespace lockstep::kernels
