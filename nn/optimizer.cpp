#include "nn/optimizer.h"

#include <utility>

namespace lockstep::nn {

Sgd::Sgd(std::vector<NamedParameter> parameters, const kernels::SgdParams& params)
    : parameters_(std::move(parameters)), params_(params) {
  if (params_.momentum == 0) return;
  for (const NamedParameter& parameter : parameters_) {
    const Tensor& value = parameter.var.value();
    momentum_.push_back(Tensor::zeros(value.shape(), Dtype::kF32, value.device()));
  }
}

void Sgd::zero_grad() {
  for (NamedParameter& parameter : parameters_) parameter.var.set_grad({});
}

void Sgd::step(Stream& stream) {
  std::vector<kernels::SgdSlot> slots;
  slots.reserve(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Var& parameter = parameters_[i].var;
    if (!parameter.grad().defined()) continue;
    slots.push_back({.param = parameter.value(),
                     .grad = parameter.grad(),
                     .momentum = momentum_.empty() ? Tensor() : momentum_[i]});
  }
  kernels::sgd_step(stream, slots, params_);
}

std::vector<StateEntry> Sgd::state() const {
  std::vector<StateEntry> entries;
  for (size_t i = 0; i < momentum_.size(); ++i) {
    const NamedParameter& parameter = parameters_[i];
    entries.push_back({.name = parameter.name + ".momentum_buffer",
                       .tensor = momentum_[i],
                       .file_shape = parameter.file_shape});
  }
  return entries;
}

}  // namespace lockstep::nn
