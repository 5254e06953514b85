#include <utility>

#include "core/check.h"
#include "kernels/elementwise/copy.h"
#include "kernels/optim/weight_averages.h"
#include "nn/optimizer.h"

namespace lockstep::nn {

Lookahead::Lookahead(std::unique_ptr<Optimizer> fast,
                     const LookaheadParams& params,
                     std::vector<StateEntry> buffers)
    : Optimizer(fast->groups()),
      fast_(std::move(fast)),
      params_(params),
      buffers_(std::move(buffers)),
      slow_(zeros_like_parameters()),
      counter_(Tensor::zeros({1}, Dtype::kI64)) {
  LS_CHECK(params_.k >= 1, "[lookahead] k: got {}, expected at least 1", params_.k);
  LS_CHECK(params_.total_steps >= 1,
           "[lookahead] steps of the run: got {}, expected at least 1",
           params_.total_steps);
  for (const StateEntry& buffer : buffers_) {
    const Tensor& tensor = buffer.tensor;
    slow_.push_back(Tensor::zeros(tensor.shape(), Dtype::kF32, tensor.device()));
  }
}

void Lookahead::follow(const kernels::StepControl& control) {
  Optimizer::follow(control);
  fast_->follow(control);
}

void Lookahead::set_applied_steps(int64_t steps) {
  fast_->set_applied_steps(steps);
  *counter_.data<int64_t>() = steps;
}

void Lookahead::begin(Stream& stream) {
  fast_->begin(stream);
  if (!from_initial_weights() || has_stepped_ || *counter_.data<int64_t>() > 0) return;
  begin_slow(stream);
  has_slow_ = true;
}

void Lookahead::step(Stream& stream) {
  if (!has_slow_) begin(stream);
  has_stepped_ = true;
  if (!control().state.defined()) return step_on_host(stream);
  fast_->step(stream);
  // The kernel decides whether, by the steps that the device counts.
  synchronize(stream,
              {.alpha = params_.alpha,
               .k = params_.k,
               .begin = from_initial_weights() ? 0 : 1,
               .total = falls_over(),
               .state = control().state});
}

void Lookahead::step_on_host(Stream& stream) {
  const int64_t step = ++*counter_.data<int64_t>();
  fast_->step(stream);
  if (step == 1 && !from_initial_weights()) begin_slow(stream);
  if (!synchronizes_after(step)) return;
  synchronize(stream, {.alpha = params_.alpha, .step = step, .total = falls_over()});
}

void Lookahead::finish(Stream& stream) {
  fast_->finish(stream);
  if (params_.variant == LookaheadVariant::kAirbench) synchronize(stream, {.alpha = 0});
}

bool Lookahead::synchronizes_after(int64_t step) const {
  if (from_initial_weights()) return step % params_.k == 0;
  return step > 1 && (step - 1) % params_.k == 0;
}

int64_t Lookahead::falls_over() const {
  return params_.variant == LookaheadVariant::kAirbench ? params_.total_steps : 0;
}

void Lookahead::begin_slow(Stream& stream) {
  size_t next = 0;
  for (const ParameterGroup& group : groups()) {
    for (const NamedParameter& parameter : group.parameters) {
      kernels::copy(stream, parameter.var.value(), slow_[next++]);
    }
  }
  for (const StateEntry& buffer : buffers_) kernels::copy(stream, buffer.tensor, slow_[next++]);
}

void Lookahead::synchronize(Stream& stream, const kernels::LookaheadParams& how) {
  std::vector<kernels::LookaheadSlot> slots;
  slots.reserve(slow_.size());
  for (const ParameterGroup& group : groups()) {
    for (const NamedParameter& parameter : group.parameters) {
      slots.push_back({.param = parameter.var.value(),
                       .slow = slow_[slots.size()],
                       .copy = parameter.var.copy()});
    }
  }
  for (const StateEntry& buffer : buffers_) {
    slots.push_back({.param = buffer.tensor, .slow = slow_[slots.size()]});
  }
  kernels::lookahead_sync(stream, slots, how);
}

std::vector<StateEntry> Lookahead::state() const {
  std::vector<StateEntry> entries = fast_->state();
  append_state(entries, "slow", slow_);
  const std::vector<StateEntry> of_buffers = state_of(buffers_, "slow", slow_);
  entries.insert(entries.end(), of_buffers.begin(), of_buffers.end());
  entries.push_back(
      {.name = "lookahead.counter", .tensor = counter_, .file_shape = counter_.shape()});
  return entries;
}

std::vector<StateEntry> Lookahead::state_of_buffers() const {
  std::vector<StateEntry> entries = fast_->state_of_buffers();
  const std::vector<StateEntry> own = state_of(buffers_, "slow", slow_);
  entries.insert(entries.end(), own.begin(), own.end());
  return entries;
}

}  // namespace lockstep::nn
