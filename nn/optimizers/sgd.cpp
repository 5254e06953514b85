#include <utility>

#include "nn/optimizer.h"

namespace lockstep::nn {

Sgd::Sgd(std::vector<NamedParameter> parameters, const kernels::SgdParams& params)
    : Sgd({{.parameters = std::move(parameters), .weight_decay = params.weight_decay}}, params) {}

Sgd::Sgd(std::vector<ParameterGroup> groups,
         const kernels::SgdParams& params,
         const std::optional<LarcParams>& larc)
    : Optimizer(std::move(groups)), params_(params) {
  if (larc) larc_.emplace(this->groups(), *larc);
  if (params_.momentum != 0) momentum_ = zeros_like_parameters();
}

void Sgd::step(Stream& stream) {
  const Tensor factors = larc_ ? larc_->factors(stream, groups(), control(), params_.lr) : Tensor();
  size_t next = 0;
  for (const ParameterGroup& group : groups()) {
    std::vector<kernels::SgdSlot> slots;
    slots.reserve(group.parameters.size());
    for (const NamedParameter& parameter : group.parameters) {
      const size_t i = next++;
      if (!parameter.var.grad().defined()) continue;
      slots.push_back({.param = parameter.var.value(),
                       .grad = parameter.var.grad(),
                       .momentum = momentum_.empty() ? Tensor() : momentum_[i],
                       .copy = parameter.var.copy(),
                       .factor = larc_ ? factors.slice(static_cast<int64_t>(i), 1) : Tensor()});
    }
    params_.weight_decay = static_cast<float>(group.weight_decay);
    params_.control = control_of(group);
    kernels::sgd_step(stream, slots, params_);
  }
}

std::vector<StateEntry> Sgd::state() const {
  std::vector<StateEntry> entries;
  if (!momentum_.empty()) append_state(entries, "momentum_buffer", momentum_);
  return entries;
}

}  // namespace lockstep::nn
