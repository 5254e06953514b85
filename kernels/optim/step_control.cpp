#include "kernels/optim/step_control.h"

#include <bit>

#include "kernels/optim/loss_scale.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

Tensor lr_table_of(std::span<const double> lrs) {
  Tensor table = Tensor::empty({static_cast<int64_t>(lrs.size())}, Dtype::kI64);
  for (size_t i = 0; i < lrs.size(); ++i) table.data<int64_t>()[i] = std::bit_cast<int64_t>(lrs[i]);
  return table;
}

void check_grad(const OpCheck& check, const Tensor& grad, const Shape& shape) {
  check.floating("grad", grad);
  check.like("grad", grad, shape, grad.dtype());
}

void check_copy(const OpCheck& check, const Tensor& copy, const Shape& shape) {
  if (!copy.defined()) return;
  check.dtype("copy", copy, {Dtype::kF16, Dtype::kBF16});
  check.like("copy", copy, shape, copy.dtype());
}

void check_step_state(const OpCheck& check, const Tensor& state) {
  if (state.defined()) check.like("state", state, {kLossScaleStateBytes}, Dtype::kU8);
}

void check_control(const OpCheck& check, const StepControl& control) {
  check_step_state(check, control.state);
  check.require(control.lr_factor >= 0, "control.lr_factor >= 0");
  if (control.grad_factor.defined()) {
    check.like("grad_factor", control.grad_factor, {1}, Dtype::kF32);
  }
  const Tensor& table = control.lr_table;
  if (!table.defined()) return;
  check.require(control.state.defined(), "control.state for control.lr_table");
  check.like("lr_table", table, {table.numel()}, Dtype::kI64);
  check.require(table.numel() >= 1, "a learning rate in control.lr_table");
}

}  // namespace lockstep::kernels
