#include "nn/optimizer.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "kernels/elementwise/fill.h"
#include "kernels/optim/sgd.h"

namespace lockstep::nn {

std::vector<ParameterGroup> without_bias_decay(std::vector<NamedParameter> parameters,
                                               double weight_decay) {
  const auto first_of_rank_1 = std::stable_partition(
      parameters.begin(), parameters.end(), [](const NamedParameter& parameter) {
        return parameter.file_shape.rank() != 1;
      });
  ParameterGroup undecayed{.parameters = {first_of_rank_1, parameters.end()}, .weight_decay = 0};
  parameters.erase(first_of_rank_1, parameters.end());
  return {{.parameters = std::move(parameters), .weight_decay = weight_decay},
          std::move(undecayed)};
}

Optimizer::Optimizer(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}

void Optimizer::zero_grad() {
  for (ParameterGroup& group : groups_) {
    for (NamedParameter& parameter : group.parameters) {
      parameter.var.set_grad({});
      if (!applies_control()) parameter.var.derive_copy();
    }
  }
}

std::vector<Tensor> Optimizer::gradients() const {
  std::vector<Tensor> gradients;
  for (const ParameterGroup& group : groups_) {
    for (const NamedParameter& parameter : group.parameters) {
      if (parameter.var.grad().defined()) gradients.push_back(parameter.var.grad());
    }
  }
  return gradients;
}

// By an SGD step from zeros, which reads the factors on the device.
void Optimizer::multiply_gradients(Stream& stream, const kernels::StepControl& by) {
  std::vector<kernels::SgdSlot> slots;
  for (ParameterGroup& group : groups_) {
    for (NamedParameter& parameter : group.parameters) {
      const Tensor gradient = parameter.var.grad();
      if (!gradient.defined()) continue;
      Tensor product = Tensor::empty(gradient.shape(), Dtype::kF32, gradient.device());
      kernels::fill(stream, 0, product);
      slots.push_back({.param = product, .grad = gradient, .momentum = {}});
      parameter.var.set_grad(product);
    }
  }
  kernels::sgd_step(stream, slots, {.lr = -1, .control = by});
}

kernels::StepControl Optimizer::control_of(const ParameterGroup& group) const {
  kernels::StepControl control = control_;
  control.lr_factor = group.lr_factor;
  return control;
}

std::vector<Tensor> Optimizer::zeros_like_parameters() const {
  std::vector<Tensor> tensors;
  for (const ParameterGroup& group : groups_) {
    for (const NamedParameter& parameter : group.parameters) {
      const Tensor& value = parameter.var.value();
      tensors.push_back(Tensor::zeros(value.shape(), Dtype::kF32, value.device()));
    }
  }
  return tensors;
}

void Optimizer::append_state(std::vector<StateEntry>& entries,
                             std::string_view suffix,
                             const std::vector<Tensor>& tensors) const {
  size_t next = 0;
  for (const ParameterGroup& group : groups_) {
    for (const NamedParameter& parameter : group.parameters) {
      entries.push_back({.name = fmt::format("{}.{}", parameter.name, suffix),
                         .tensor = tensors[next++],
                         .file_shape = parameter.file_shape});
    }
  }
}

std::vector<StateEntry> Optimizer::state_of(const std::vector<StateEntry>& buffers,
                                            std::string_view suffix,
                                            const std::vector<Tensor>& tensors) {
  std::vector<StateEntry> entries;
  entries.reserve(buffers.size());
  size_t next = tensors.size() - buffers.size();
  for (const StateEntry& buffer : buffers) {
    entries.push_back({.name = fmt::format("{}.{}", buffer.name, suffix),
                       .tensor = tensors[next++],
                       .file_shape = buffer.file_shape});
  }
  return entries;
}

}  // namespace lockstep::nn
