#include "nn/optimizer.h"

#include <utility>

namespace lockstep::nn {

Sgd::Sgd(std::vector<Var> parameters, const kernels::SgdParams& params)
    : parameters_(std::move(parameters)), params_(params) {
  if (params_.momentum == 0) return;
  for (const Var& parameter : parameters_) {
    momentum_.push_back(Tensor::zeros(parameter.shape(), Dtype::kF32, parameter.value().device()));
  }
}

void Sgd::zero_grad() {
  for (Var& parameter : parameters_) parameter.set_grad({});
}

void Sgd::step(Stream& stream) {
  std::vector<kernels::SgdSlot> slots;
  slots.reserve(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    slots.push_back({.param = parameters_[i].value(),
                     .grad = parameters_[i].grad(),
                     .momentum = momentum_.empty() ? Tensor() : momentum_[i]});
  }
  kernels::sgd_step(stream, slots, params_);
}

}  // namespace lockstep::nn
