#include <utility>

#include "core/check.h"
#include "kernels/elementwise/copy.h"
#include "kernels/optim/weight_averages.h"
#include "nn/optimizer.h"

namespace lockstep::nn {

Lookahead::Lookahead(std::unique_ptr<Optimizer> fast,
                     const LookaheadParams& params,
                     std::vector<StateEntry> buffers)
    : AveragingOptimizer(
          std::move(fast), std::move(buffers), {.suffix = "slow", .counter = "lookahead.counter"}),
      params_(params) {
  LS_CHECK(params_.k >= 1, "[lookahead] k: got {}, expected at least 1", params_.k);
  LS_CHECK(params_.total_steps >= 1,
           "[lookahead] steps of the run: got {}, expected at least 1",
           params_.total_steps);
}

void Lookahead::begin(Stream& stream) {
  fast().begin(stream);
  if (!from_initial_weights() || has_stepped_ || counter() > 0 || is_restored()) return;
  copy_values(stream);
  has_slow_ = true;
}

void Lookahead::step(Stream& stream) {
  if (!has_slow_) begin(stream);
  has_stepped_ = true;
  if (!control().state.defined()) return step_on_host(stream);
  step_fast(stream);
  // The kernel decides whether to synchronize, by the number of steps that the device has counted.
  synchronize(stream,
              {.alpha = params_.alpha,
               .k = params_.k,
               .begin = from_initial_weights() ? 0 : 1,
               .total = alpha_decay_steps(),
               .state = control().state});
}

void Lookahead::step_on_host(Stream& stream) {
  const int64_t step = ++counter();
  step_fast(stream);
  if (step == 1 && !from_initial_weights()) copy_values(stream);
  if (!synchronizes_after(step)) return;
  synchronize(stream, {.alpha = params_.alpha, .step = step, .total = alpha_decay_steps()});
}

void Lookahead::finish(Stream& stream) {
  fast().finish(stream);
  if (params_.variant != LookaheadVariant::kAirbench) return;
  synchronize(stream, {.alpha = 0});
  // The slow weights of a resumed run must not move what is frozen.
  if (!has_stepped_) return;
  size_t next = 0;
  for (const ParameterGroup& group : groups()) {
    for (const NamedParameter& parameter : group.parameters) {
      Tensor slow = averages()[next++];
      if (is_frozen(parameter)) kernels::copy(stream, parameter.var.value(), slow);
    }
  }
}

// A parameter without a gradient keeps its value, whether it requires one or not. Before the first
// step of a process nothing is known about that.
bool Lookahead::is_frozen(const NamedParameter& parameter) const {
  return has_stepped_ && !parameter.var.grad().defined();
}

bool Lookahead::synchronizes_after(int64_t step) const {
  if (from_initial_weights()) return step % params_.k == 0;
  return step > 1 && (step - 1) % params_.k == 0;
}

int64_t Lookahead::alpha_decay_steps() const {
  return params_.variant == LookaheadVariant::kAirbench ? params_.total_steps : 0;
}

void Lookahead::synchronize(Stream& stream, const kernels::LookaheadParams& how) {
  std::vector<kernels::LookaheadSlot> slots;
  slots.reserve(averages().size());
  for (const ParameterGroup& group : groups()) {
    for (const NamedParameter& parameter : group.parameters) {
      const Tensor& value = parameter.var.value();
      slots.push_back(
          {.param = value, .slow = averages()[slots.size()], .copy = parameter.var.copy()});
      if (!is_frozen(parameter)) continue;
      slots.back().param = Tensor::empty(value.shape(), value.dtype(), value.device());
      slots.back().copy = {};
      kernels::copy(stream, value, slots.back().param);
    }
  }
  for (const StateEntry& buffer : buffers()) {
    slots.push_back({.param = buffer.tensor, .slow = averages()[slots.size()]});
  }
  kernels::lookahead_sync(stream, slots, how);
}

}  // namespace lockstep::nn
