#include <utility>

#include "nn/optimizer.h"

namespace lockstep::nn {

Adam::Adam(std::vector<NamedParameter> parameters, const kernels::AdamParams& params)
    : Adam({{.parameters = std::move(parameters), .weight_decay = params.weight_decay}}, params) {}

Adam::Adam(std::vector<ParameterGroup> groups, const kernels::AdamParams& params)
    : Optimizer(std::move(groups)),
      params_(params),
      exp_avg_(zeros_like_parameters()),
      exp_avg_sq_(zeros_like_parameters()),
      steps_(Tensor::zeros({1}, Dtype::kI64)) {}

void Adam::step(Stream& stream) {
  int64_t step = 0;  // the device's own
  if (!control().state.defined()) step = ++*steps_.data<int64_t>();
  size_t next = 0;
  for (const ParameterGroup& group : groups()) {
    std::vector<kernels::AdamSlot> slots;
    slots.reserve(group.parameters.size());
    for (const NamedParameter& parameter : group.parameters) {
      const size_t i = next++;
      if (!parameter.var.grad().defined()) continue;
      slots.push_back({.param = parameter.var.value(),
                       .grad = parameter.var.grad(),
                       .exp_avg = exp_avg_[i],
                       .exp_avg_sq = exp_avg_sq_[i],
                       .copy = parameter.var.copy()});
    }
    params_.weight_decay = group.weight_decay;
    params_.control = control_of(group);
    kernels::adam_step(stream, slots, params_, step);
  }
}

std::vector<StateEntry> Adam::state() const {
  std::vector<StateEntry> entries;
  append_state(entries, "exp_avg", exp_avg_);
  append_state(entries, "exp_avg_sq", exp_avg_sq_);
  entries.push_back({.name = "adam.step", .tensor = steps_, .file_shape = steps_.shape()});
  return entries;
}

}  // namespace lockstep::nn
