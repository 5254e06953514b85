#include <utility>

#include "kernels/elementwise/copy.h"
#include "nn/optimizer.h"

namespace lockstep::nn {

AveragingOptimizer::AveragingOptimizer(std::unique_ptr<Optimizer> fast,
                                       std::vector<StateEntry> buffers,
                                       const Names& names)
    : Optimizer(fast->groups()),
      fast_(std::move(fast)),
      buffers_(std::move(buffers)),
      names_(names),
      averages_(zeros_like_parameters()),
      counter_(Tensor::zeros({1}, Dtype::kI64)) {
  for (const StateEntry& buffer : buffers_) {
    const Tensor& tensor = buffer.tensor;
    averages_.push_back(Tensor::zeros(tensor.shape(), Dtype::kF32, tensor.device()));
  }
}

void AveragingOptimizer::was_restored() {
  fast_->was_restored();
  is_restored_ = true;
}

void AveragingOptimizer::follow(const kernels::StepControl& control) {
  Optimizer::follow(control);
  fast_->follow(control);
}

void AveragingOptimizer::step_fast(Stream& stream) {
  const bool is_skipped = control().state.defined() && gradients().empty();
  if (fast_->applies_control() || !is_skipped) fast_->step(stream);
}

void AveragingOptimizer::set_applied_steps(int64_t steps) {
  fast_->set_applied_steps(steps);
  counter() = steps;
}

std::vector<StateEntry> AveragingOptimizer::state() const {
  std::vector<StateEntry> entries = fast_->state();
  append_state(entries, names_.suffix, averages_);
  const std::vector<StateEntry> of_buffers = state_of(buffers_, names_.suffix, averages_);
  entries.insert(entries.end(), of_buffers.begin(), of_buffers.end());
  entries.push_back(
      {.name = std::string(names_.counter), .tensor = counter_, .file_shape = counter_.shape()});
  return entries;
}

std::vector<StateEntry> AveragingOptimizer::state_of_buffers() const {
  std::vector<StateEntry> entries = fast_->state_of_buffers();
  const std::vector<StateEntry> own = state_of(buffers_, names_.suffix, averages_);
  entries.insert(entries.end(), own.begin(), own.end());
  return entries;
}

std::vector<Tensor> AveragingOptimizer::values() const {
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

void AveragingOptimizer::copy_values(Stream& stream) const {
  const std::vector<Tensor> tensors = values();
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor average = averages_[i];
    kernels::copy(stream, tensors[i], average);
  }
}

}  // namespace lockstep::nn
