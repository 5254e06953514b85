#include "nn/grad_scaler.h"

#include <algorithm>

#include "core/error.h"
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
  control.unscales = true;
  optimizer_.follow(control);
}

void GradScaler::set_learning_rates(std::span<const double> lrs) {
  if (!optimizer_.applies_control()) return lrs_.assign(lrs.begin(), lrs.end());
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
  if (optimizer_.applies_control() || !optimizer_.control().unscales) return;
  const kernels::LossScaleState state = read();
  if (state.found_inf != 0) {
    optimizer_.zero_grad();
  } else {
    optimizer_.multiply_gradients(stream_, {.state = state_});
  }
  set_unscales(false);
  if (lrs_.empty()) return;
  optimizer_.set_lr(lrs_[static_cast<size_t>(std::min(state.applied, std::ssize(lrs_) - 1))]);
}

// Whether gradients are still multiplied by the scale.
void GradScaler::set_unscales(bool unscales) {
  kernels::StepControl control = optimizer_.control();
  control.unscales = unscales;
  optimizer_.follow(control);
}

void GradScaler::update() {
  if (!optimizer_.applies_control()) {
    if (optimizer_.control().unscales) {
      throw UsageError("the gradients of this step were not divided by the loss scale",
                       "the optimizer does not do so, and GradScaler::check() was not called",
                       "check() before step(), and update() after it");
    }
    set_unscales(true);
  }
  kernels::loss_scale_update(stream_, rule_, state_);
}

kernels::LossScaleState GradScaler::read() const {
  return kernels::read_loss_scale(stream_, state_);
}

void GradScaler::restore(const kernels::LossScaleState& state) {
  kernels::loss_scale_init(stream_, state, state_);
}

}  // namespace lockstep::nn
