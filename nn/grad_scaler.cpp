#include "nn/grad_scaler.h"

#include "core/transfer.h"

namespace lockstep::nn {

GradScaler::GradScaler(Stream& stream,
                       Optimizer& optimizer,
                       const kernels::LossScaleRule& rule,
                       const kernels::LossScaleState& initial)
    : stream_(stream),
      optimizer_(optimizer),
      rule_(rule),
      state_(Tensor::empty({kernels::kLossScaleStateBytes}, Dtype::kU8, stream.device())) {
  restore(initial);
  kernels::StepControl control = optimizer_.control();
  control.state = state_;
  optimizer_.follow(control);
}

GradScaler::~GradScaler() {
  kernels::StepControl control = optimizer_.control();
  control.state = {};
  control.lr_table = {};
  optimizer_.follow(control);
}

void GradScaler::set_learning_rates(std::span<const double> lrs) {
  kernels::StepControl control = optimizer_.control();
  const Tensor table = kernels::lr_table_of(lrs);
  if (control.lr_table.defined() && control.lr_table.shape() == table.shape()) {
    transfer(stream_, table, control.lr_table);  // where recorded work finds it
    return;
  }
  control.lr_table = to_device(stream_, table);
  optimizer_.follow(control);
}

Tensor GradScaler::seed(int64_t leaves) const {
  Tensor seed = Tensor::empty({leaves}, Dtype::kF32, stream_.device());
  kernels::loss_scale_seed(stream_, state_, seed);
  return seed;
}

void GradScaler::check() {
  kernels::check_finite(stream_, optimizer_.gradients(), state_);
}

void GradScaler::update() {
  kernels::loss_scale_update(stream_, rule_, state_);
}

kernels::LossScaleState GradScaler::read() const {
  return kernels::read_loss_scale(stream_, state_);
}

void GradScaler::restore(const kernels::LossScaleState& state) {
  kernels::loss_scale_init(stream_, state, state_);
}

}  // namespace lockstep::nn
