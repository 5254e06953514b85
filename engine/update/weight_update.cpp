#include "engine/update/weight_update.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"
#include "engine/update/make_optimizer.h"

namespace lockstep {
namespace {

[[noreturn]] void throw_overflow(const kernels::LossScaleState& state, int64_t steps) {
  throw DivergedError(
      fmt::format("{} steps in a row were skipped, up to step {}", state.consecutive_skips, steps),
      fmt::format("a gradient was infinite or NaN in each of them, at a loss scale of {:g}",
                  state.scale),
      "a smaller learning rate or clipped gradients; if it begins at step 1, look for NaN in the "
      "input",
      Remedy::kSmallerRate);
}

ScaledStep scaled_step(const kernels::LossScaleState& state) {
  return {
      .scale = state.scale, .skipped = state.skipped, .consecutive_skips = state.consecutive_skips};
}

std::unique_ptr<nn::Optimizer> optimizer_of(const TrainingSettings& settings,
                                            const nn::Module& model,
                                            int64_t steps_per_epoch,
                                            const UpdateHooks& hooks) {
  if (hooks.make_optimizer) return hooks.make_optimizer(model.named_parameters());
  OptimizerOptions options = settings.optimizer;
  if (options.lookahead) {
    options.lookahead->total_steps =
        settings.steps(steps_per_epoch) - settings.start_epoch * steps_per_epoch;
  }
  return make_optimizer(options, model.named_parameters(), buffers_of(model));
}

}  // namespace

std::string overflow_line(bool dynamic, float scale) {
  constexpr const char* kSkipping = "Gradient overflow.  Skipping step, ";
  if (!dynamic) return fmt::format("{}loss scale stays {:#}", kSkipping, scale);
  return fmt::format("{}loss scaler 0 reducing loss scale to {:#}", kSkipping, scale);
}

WeightUpdate::WeightUpdate(const TrainingSettings& settings,
                           int64_t step_images,
                           Stream& stream,
                           const nn::Module& model,
                           int64_t steps_per_epoch,
                           UpdateHooks hooks)
    : stream_(stream),
      stored_(settings.precision, model),
      may_skip_(settings.precision.loss_scaling.has_value()),
      optimizer_(optimizer_of(settings, model, steps_per_epoch, hooks)),
      rate_(std::move(hooks.rate)),
      schedule_(settings.schedule,
                settings.optimizer.base_lr(step_images),
                settings.epochs,
                steps_per_epoch),
      steps_({.first = settings.start_epoch * steps_per_epoch,
              .end = settings.steps(steps_per_epoch),
              .most = settings.max_steps.value_or(settings.steps(steps_per_epoch))}),
      trained_at_first_(
          trained_at_first(settings.optimizer, model.named_parameters(), steps_per_epoch)) {
  const std::optional<LossScaling>& scaling = settings.precision.loss_scaling;
  if (scaling || stream.device() == Device::kCuda) {
    const LossScaling one{.dynamic = false, .initial = 1};
    scaler_.emplace(stream,
                    *optimizer_,
                    kernels::LossScaleRule{.dynamic = scaling.value_or(one).dynamic},
                    kernels::LossScaleState{.scale = scaling.value_or(one).initial});
    follow_schedule();
  }
  if (const double norm = settings.optimizer.clip_grad_norm; norm > 0) {
    clipper_.emplace(stream, *optimizer_, static_cast<float>(norm));
  }
}

void WeightUpdate::weights_were_written() {
  stored_.refresh(stream_);
  optimizer_->begin(stream_);
}

void WeightUpdate::finish() {
  optimizer_->finish(stream_);
  stored_.round(stream_);
}

// With a scaler, the rate is looked up on the device, where applied steps are counted.
void WeightUpdate::follow_schedule() {
  if (!scaler_) return;
  const int64_t steps = std::min(steps_.end - steps_.first, steps_.most);
  std::vector<double> lrs(static_cast<size_t>(std::max<int64_t>(0, steps)));
  for (size_t i = 0; i < lrs.size(); ++i) {
    lrs[i] = rate_of(steps_.first + static_cast<int64_t>(i));
  }
  scaler_->set_learning_rates(lrs);
}

Tensor WeightUpdate::seed(int64_t leaves) const {
  return scaler_ ? scaler_->seed(leaves) : Tensor();
}

bool WeightUpdate::trains_fewer_from(int64_t number) const {
  return std::ranges::any_of(trained_at_first_,
                             [&](const TrainedAtFirst& each) { return each.steps == number; });
}

// A parameter without a gradient is left alone, by clipping and decay too, as in PyTorch after
// requires_grad_(False).
void WeightUpdate::step(int64_t number) {
  for (TrainedAtFirst& each : trained_at_first_) {
    if (number >= each.steps) each.parameter.set_grad({});
  }
  if (clipper_) clipper_->clip();
  if (scaler_ && may_skip_) scaler_->check();
  if (!scaler_) {
    lr_ = rate_of(number);
    optimizer_->set_lr(lr_);
  }
  optimizer_->step(stream_);
  stored_.round(stream_);
  if (scaler_) scaler_->update();
}

void WeightUpdate::with_average(FunctionRef<void()> use) {
  const std::vector<Tensor> weights = average()->put_into_model(stream_);
  stored_.round(stream_);
  use();
  average()->put_back(stream_, weights);
  stored_.round(stream_);
}

ScaledStep WeightUpdate::read_scale(int64_t steps) {
  if (!scaler_) return {};
  const kernels::LossScaleState state = scaler_->read();
  optimizer_->set_applied_steps(state.applied);
  lr_ = rate_of(steps_.first + state.applied - (state.consecutive_skips > 0 ? 0 : 1));
  if (state.consecutive_skips >= kMaxSkips) throw_overflow(state, steps);
  ScaledStep result = scaled_step(state);
  result.newly_skipped = state.skipped - std::exchange(skips_seen_, state.skipped);
  return result;
}

ScaledStep WeightUpdate::scaled() const {
  return scaler_ ? scaled_step(scaler_->read()) : ScaledStep();
}

std::optional<double> WeightUpdate::end_epoch(int64_t epoch,
                                              double validation_loss,
                                              double accuracy) {
  const std::optional<double> rate = schedule_.end_epoch(epoch, validation_loss, accuracy);
  if (schedule_.watches_validation()) follow_schedule();
  return rate;
}

void WeightUpdate::describe(TrainingPosition& position) const {
  position.applied = position.steps;
  position.schedule = schedule_.state();
  if (!scaler_) return;
  const kernels::LossScaleState state = scaler_->read();
  position.applied = steps_.first + state.applied;  // the run before may have skipped steps
  if (may_skip_) position.loss_scale = state;
}

void WeightUpdate::restore(const TrainingPosition& position) {
  schedule_.restore(position.schedule);
  if (position.steps > steps_.first) optimizer_->was_restored();
  if (position.applied > steps_.first) lr_ = rate_of(position.applied - 1);
  if (!scaler_) return;
  kernels::LossScaleState state = scaler_->read();
  state.applied = position.applied - steps_.first;
  if (may_skip_ && position.loss_scale) {
    const float asked = state.scale;
    state = *position.loss_scale;
    if (!scaler_->rule().dynamic) state.scale = asked;
  }
  scaler_->restore(state);
  skips_seen_ = state.skipped;
  follow_schedule();
}

}  // namespace lockstep
