#include "engine/update/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include "core/check.h"
#include "engine/settings/training_settings.h"
#include "engine/update/schedule_rows.h"

namespace lockstep {
bool Plateau::calls_for_cut(double loss, double accuracy) {
  const double watched = config_.on_accuracy ? accuracy : loss;
  const double metric = config_.upwards ? -watched : watched;
  const double threshold = config_.upwards ? 1 + config_.threshold : 1 - config_.threshold;
  if (metric < state_.best * threshold) {
    state_.best = metric;
    state_.bad_epochs = 0;
  } else {
    ++state_.bad_epochs;
  }
  if (state_.bad_epochs <= config_.patience) return false;
  state_.bad_epochs = 0;
  return true;
}

Schedule::Schedule(const ScheduleOptions& config,
                   double base_lr,
                   double epochs,
                   int64_t steps_per_epoch)
    : config_(config),
      base_lr_(base_lr),
      epochs_(epochs),
      steps_per_epoch_(steps_per_epoch),
      plateau_(config.plateau) {
  LS_CHECK(steps_per_epoch >= 1, "[schedule] steps per epoch: got {}", steps_per_epoch);
}

double Schedule::lr(int64_t step) const {
  return base_lr_ * warmup_factor(step) * factor(step);
}

double Schedule::warmup_factor(int64_t step) const {
  const WarmupOptions& warmup = config_.warmup;
  if (step >= config_.warmup_epochs * steps_per_epoch_)
    return after_warmup(step / steps_per_epoch_);
  const bool each_step = config_.on_updates || warmup.method == WarmupMethod::kApex;
  const auto done = static_cast<double>(each_step ? step : step / steps_per_epoch_);
  const auto length =
      static_cast<double>(config_.warmup_epochs * (each_step ? steps_per_epoch_ : 1));
  switch (warmup.method) {
    case WarmupMethod::kLinear:
    case WarmupMethod::kFrozenCosine:
      return warmup.decay + (1 - warmup.decay) * done / length;
    case WarmupMethod::kFromOne:
      return (done + 1) / length;
    case WarmupMethod::kApex:
      break;
  }
  return (done + 2) / length;
}

double Schedule::after_warmup(int64_t epoch) const {
  const int64_t warm = config_.warmup_epochs;
  if (config_.warmup.method != WarmupMethod::kFrozenCosine || epoch <= warm) return 1;
  const auto rest = static_cast<double>(std::max(steps_of(epochs_, 1) - warm, int64_t{1}));
  return (1 + std::cos(std::numbers::pi / rest)) / 2;
}

double Schedule::factor(int64_t step) const {
  const bool is_prefix = config_.warmup.is_prefix;
  const int64_t unit = config_.on_updates ? 1 : steps_per_epoch_;
  const int64_t warm = config_.warmup_epochs * steps_per_epoch_ / unit;
  const int64_t begin = is_prefix ? warm : 0;
  const int64_t end = steps_of(epochs_, steps_per_epoch_ / unit);
  const int64_t position = step / unit < warm ? 0 : std::min(step / unit, end);
  const int64_t epoch = step / steps_per_epoch_ - (is_prefix ? config_.warmup_epochs : 0);
  return row_of(config_.kind)
      .factor(config_,
              {.epoch = std::max(epoch, int64_t{0}),
               .position = std::max(position - begin, int64_t{0}),
               .length = end - begin,
               .plateau_cuts = plateau_factor_});
}

std::optional<double> Schedule::end_epoch(int64_t epoch, double validation_loss, double accuracy) {
  if (!watches_validation()) return std::nullopt;
  if (epoch <= config_.warmup_epochs) plateau_factor_ = 1;
  if (!plateau_.calls_for_cut(validation_loss, accuracy)) return std::nullopt;
  constexpr double kMinChange = 1e-8;  // of the rate, as in PyTorch
  const double next = lr((epoch + 1) * steps_per_epoch_);
  if (!(next - next * config_.gamma > kMinChange)) return std::nullopt;
  plateau_factor_ *= config_.gamma;
  return next * config_.gamma;
}

std::string Schedule::metric() const {
  const PlateauOptions& plateau = config_.plateau;
  return fmt::format(
      "{}, {}", plateau.on_accuracy ? "acc" : "loss", plateau.upwards ? "max" : "min");
}

std::optional<ScheduleState> Schedule::state() const {
  if (!watches_validation()) return std::nullopt;
  return ScheduleState{.factor = plateau_factor_, .plateau = plateau_.state(), .metric = metric()};
}

void Schedule::restore(const std::optional<ScheduleState>& state) {
  if (!watches_validation() || !state) return;
  plateau_factor_ = state->factor;
  if (state->metric.empty() || state->metric == metric()) plateau_.restore(state->plateau);
}

}  // namespace lockstep
