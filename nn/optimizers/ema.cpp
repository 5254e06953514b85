#include <utility>

#include "kernels/elementwise/copy.h"
#include "kernels/optim/weight_averages.h"
#include "nn/optimizer.h"

namespace lockstep::nn {

Ema::Ema(std::unique_ptr<Optimizer> fast, std::vector<StateEntry> buffers, double decay)
    : Optimizer(fast->groups()),
      fast_(std::move(fast)),
      buffers_(std::move(buffers)),
      decay_(decay),
      averages_(zeros_like_parameters()),
      counter_(Tensor::zeros({1}, Dtype::kI64)) {
  for (const StateEntry& buffer : buffers_) {
    const Tensor& tensor = buffer.tensor;
    averages_.push_back(Tensor::zeros(tensor.shape(), Dtype::kF32, tensor.device()));
  }
}

void Ema::follow(const kernels::StepControl& control) {
  Optimizer::follow(control);
  fast_->follow(control);
}

void Ema::set_applied_steps(int64_t steps) {
  fast_->set_applied_steps(steps);
  *counter_.data<int64_t>() = steps;
}

std::vector<Tensor> Ema::values() const {
  std::vector<Tensor> tensors;
  tensors.reserve(averages_.size());
  for (const ParameterGroup& group : groups()) {
    for (const NamedParameter& parameter : group.parameters) {
      tensors.push_back(parameter.var.value());
    }
  }
  for (const StateEntry& buffer : buffers_) tensors.push_back(buffer.tensor);
  return tensors;
}

void Ema::step(Stream& stream) {
  const std::vector<Tensor> tensors = values();
  int64_t& step = *counter_.data<int64_t>();
  if (!std::exchange(has_begun_, true) && step == 0) {
    for (size_t i = 0; i < tensors.size(); ++i) kernels::copy(stream, tensors[i], averages_[i]);
  }
  fast_->step(stream);
  std::vector<kernels::EmaSlot> slots;
  slots.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    slots.push_back({.param = tensors[i], .ema = averages_[i]});
  }
  const Tensor& state = control().state;
  if (!state.defined()) ++step;  // else the device counts
  kernels::ema_update(
      stream, slots, {.decay = decay_, .step = state.defined() ? 1 : step, .state = state});
}

std::vector<StateEntry> Ema::state() const {
  std::vector<StateEntry> entries = fast_->state();
  append_state(entries, "ema", averages_);
  const std::vector<StateEntry> of_buffers = state_of(buffers_, "ema", averages_);
  entries.insert(entries.end(), of_buffers.begin(), of_buffers.end());
  entries.push_back({.name = "ema.step", .tensor = counter_, .file_shape = counter_.shape()});
  return entries;
}

std::vector<StateEntry> Ema::state_of_buffers() const {
  std::vector<StateEntry> entries = fast_->state_of_buffers();
  const std::vector<StateEntry> own = state_of(buffers_, "ema", averages_);
  entries.insert(entries.end(), own.begin(), own.end());
  return entries;
}

std::vector<Tensor> Ema::put_into_model(Stream& stream) const {
  std::vector<Tensor> before;
  for (const Tensor& tensor : values()) {
    before.push_back(Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device()));
    kernels::copy(stream, tensor, before.back());
  }
  put_back(stream, averages_);
  return before;
}

void Ema::put_back(Stream& stream, std::span<const Tensor> from) const {
  std::vector<Tensor> to = values();
  for (size_t i = 0; i < to.size(); ++i) kernels::copy(stream, from[i], to[i]);
}

}  // namespace lockstep::nn
