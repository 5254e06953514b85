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

int64_t Adam::count_step() {
  return control().state.defined() ? 0 : ++*steps_.data<int64_t>();
}

std::vector<kernels::AdamSlot> Adam::slots_of(const ParameterGroup& group, size_t first) const {
  std::vector<kernels::AdamSlot> slots;
  slots.reserve(group.parameters.size());
  size_t next = first;
  for (const NamedParameter& parameter : group.parameters) {
    const size_t i = next++;
    if (!parameter.var.grad().defined()) continue;
    slots.push_back({.param = parameter.var.value(),
                     .grad = parameter.var.grad(),
                     .exp_avg = exp_avg_[i],
                     .exp_avg_sq = exp_avg_sq_[i],
                     .copy = parameter.var.copy()});
  }
  return slots;
}

void Adam::step(Stream& stream) {
  const int64_t step = count_step();
  size_t first = 0;
  for (const ParameterGroup& group : groups()) {
    std::vector<kernels::AdamSlot> slots = slots_of(group, first);
    first += group.parameters.size();
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
