#include <algorithm>
#include <utility>

#include "core/round_up.h"
#include "kernels/elementwise/fill.h"
#include "kernels/optim/gradient_factors.h"
#include "kernels/optim/sgd.h"
#include "kernels/reduce/tensor_norms.h"
#include "nn/optimizer.h"

// A step is composed of Adam, SGD and LARC kernels: the update is what an Adam step adds to a
// tensor of zeros.

namespace lockstep::nn {
namespace {

// Returns a tensor of zeros for each slot, all in one piece of memory.
std::vector<Tensor> zeros_like(Stream& stream, std::span<const kernels::AdamSlot> slots) {
  constexpr int64_t kAlignment = 64;  // elements
  const auto aligned = [](const Tensor& tensor) { return round_up(tensor.numel(), kAlignment); };
  int64_t all = 0;
  for (const kernels::AdamSlot& slot : slots) all += aligned(slot.param);
  Tensor memory = Tensor::empty({all}, Dtype::kF32, stream.device());
  kernels::fill(stream, 0, memory);
  std::vector<Tensor> tensors;
  int64_t first = 0;
  for (const kernels::AdamSlot& slot : slots) {
    tensors.push_back(memory.slice(first, slot.param.numel()).view(slot.param.shape()));
    first += aligned(slot.param);
  }
  return tensors;
}

}  // namespace

Lamb::Lamb(std::vector<ParameterGroup> groups, const kernels::AdamParams& params)
    : Adam(std::move(groups), params) {
  int64_t most = 0;
  Device device = Device::kCpu;
  for (const ParameterGroup& group : this->groups()) {
    most = std::max(most, std::ssize(group.parameters));
    if (!group.parameters.empty()) device = group.parameters.front().var.value().device();
  }
  zeros_ = Tensor::zeros({most}, Dtype::kF32, device);
}

void Lamb::step(Stream& stream) {
  const int64_t step = count_step();
  size_t first = 0;
  for (const ParameterGroup& group : groups()) {
    const std::vector<kernels::AdamSlot> slots = slots_of(group, first);
    first += group.parameters.size();
    if (!slots.empty()) step_group(stream, group, slots, step);
  }
}

void Lamb::step_group(Stream& stream,
                      const ParameterGroup& group,
                      std::span<const kernels::AdamSlot> slots,
                      int64_t step) {
  kernels::StepControl control = control_of(group);
  const std::vector<Tensor> updates = zeros_like(stream, slots);
  std::vector<kernels::AdamSlot> moments(slots.begin(), slots.end());
  for (size_t i = 0; i < slots.size(); ++i) {
    moments[i].param = updates[i];
    moments[i].copy = {};
  }
  kernels::AdamParams to_updates = params();
  to_updates.lr = -1;
  to_updates.control = {
      .state = control.state, .grad_factor = control.grad_factor, .unscales = control.unscales};
  kernels::adam_step(stream, moments, to_updates, step);

  const auto count = std::ssize(slots);
  Tensor ratios;
  if (group.weight_decay != 0) {
    std::vector<kernels::SgdSlot> decays;
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < slots.size(); ++i) {
      decays.push_back({.param = updates[i], .grad = slots[i].param, .momentum = {}});
      tensors.push_back(slots[i].param);
    }
    kernels::sgd_step(stream, decays, {.lr = -group.weight_decay});
    tensors.insert(tensors.end(), updates.begin(), updates.end());
    Tensor norms = Tensor::empty({2 * count + 1}, Dtype::kF32, stream.device());
    kernels::tensor_norms(stream, tensors, norms);
    // LARC's factor without eps and weight decay; it is 0 where the update is 0.
    ratios = Tensor::empty({count}, Dtype::kF32, stream.device());
    kernels::larc_factors(
        stream, norms, zeros_.slice(0, count), {.trust = 1, .eps = 0, .clip = false}, ratios);
  }

  std::vector<kernels::SgdSlot> steps;
  steps.reserve(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    steps.push_back(
        {.param = slots[i].param,
         .grad = updates[i],
         .momentum = {},
         .copy = slots[i].copy,
         .factor = ratios.defined() ? ratios.slice(static_cast<int64_t>(i), 1) : Tensor()});
  }
  control.unscales = false;
  control.grad_factor = {};
  kernels::sgd_step(stream, steps, {.lr = params().lr, .control = control});
}

}  // namespace lockstep::nn
