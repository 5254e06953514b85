#include <utility>

#include "core/check.h"
#include "kernels/elementwise/copy.h"
#include "kernels/optim/weight_averages.h"
#include "nn/optimizer.h"

namespace lockstep::nn {

Lookahead::Lookahead(std::unique_ptr<Optimizer> fast, const LookaheadParams& params)
    : Optimizer(fast->groups()),
      fast_(std::move(fast)),
      params_(params),
      slow_(zeros_like_parameters()),
      counter_(Tensor::zeros({1}, Dtype::kI64)) {
  LS_CHECK(params_.k >= 1, "[lookahead] k: got {}, expected at least 1", params_.k);
}

void Lookahead::follow(const kernels::StepControl& control) {
  Optimizer::follow(control);
  fast_->follow(control);
}

void Lookahead::set_applied_steps(int64_t steps) {
  fast_->set_applied_steps(steps);
  *counter_.data<int64_t>() = steps;
}

void Lookahead::step(Stream& stream) {
  if (!control().state.defined()) return step_on_host(stream);
  const bool fresh = !std::exchange(has_begun_, true) && *counter_.data<int64_t>() == 0;
  if (fresh && params_.variant == LookaheadVariant::kPaper) begin_slow(stream);
  fast_->step(stream);
  synchronize(stream);  // the kernel decides whether, by the steps that the device counts
}

void Lookahead::step_on_host(Stream& stream) {
  const int64_t step = ++*counter_.data<int64_t>();
  const bool from_initial_weights = params_.variant == LookaheadVariant::kPaper;
  if (step == 1 && from_initial_weights) begin_slow(stream);
  fast_->step(stream);
  if (step == 1 && !from_initial_weights) begin_slow(stream);
  if (synchronizes_after(step)) synchronize(stream);
}

bool Lookahead::synchronizes_after(int64_t step) const {
  if (params_.variant == LookaheadVariant::kPaper) return step % params_.k == 0;
  return step > 1 && (step - 1) % params_.k == 0;
}

void Lookahead::begin_slow(Stream& stream) {
  size_t next = 0;
  for (const ParameterGroup& group : groups()) {
    for (const NamedParameter& parameter : group.parameters) {
      kernels::copy(stream, parameter.var.value(), slow_[next++]);
    }
  }
}

void Lookahead::synchronize(Stream& stream) {
  std::vector<kernels::LookaheadSlot> slots;
  slots.reserve(slow_.size());
  for (const ParameterGroup& group : groups()) {
    for (const NamedParameter& parameter : group.parameters) {
      slots.push_back({.param = parameter.var.value(),
                       .slow = slow_[slots.size()],
                       .copy = parameter.var.copy()});
    }
  }
  kernels::lookahead_sync(stream,
                          slots,
                          {.alpha = static_cast<float>(params_.alpha),
                           .k = control().state.defined() ? params_.k : 1,
                           .begin = params_.variant == LookaheadVariant::kPaper ? 0 : 1,
                           .state = control().state});
}

std::vector<StateEntry> Lookahead::state() const {
  std::vector<StateEntry> entries = fast_->state();
  append_state(entries, "slow", slow_);
  entries.push_back(
      {.name = "lookahead.counter", .tensor = counter_, .file_shape = counter_.shape()});
  return entries;
}

}  // namespace lockstep::nn
