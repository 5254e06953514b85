// The learning rate of each step.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "engine/settings/schedule_options.h"

namespace lockstep {

// Decides when a metric has stopped improving. Source: torch.optim.lr_scheduler.ReduceLROnPlateau,
// relative threshold, no cooldown; mode "max" where PlateauOptions::upwards is set.
class Plateau {
 public:
  explicit Plateau(const PlateauOptions& config) : config_(config) {}

  // Adds an epoch's figures. Returns true when more than `patience` epochs since the last
  // improvement or the last cut were no better.
  bool calls_for_cut(double loss, double accuracy);

  struct State {
    double best = std::numeric_limits<double>::infinity();  // of the metric; upwards: of -metric
    int64_t bad_epochs = 0;

    bool operator==(const State& other) const = default;
  };
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  PlateauOptions config_;
  State state_;
};

// The state that a resumed run needs beside its settings.
struct ScheduleState {
  double factor = 1;  // of the rate, by all cuts so far
  Plateau::State plateau = {};
  std::string metric = {};  // that the plateau watched: "loss, min"; empty: as this run's

  bool operator==(const ScheduleState& other) const = default;
};

// A pure function of the step, but for kPlateau: the factor of warm-up times that of the schedule
// (engine/update/schedule_rows.cpp).
class Schedule {
 public:
  // The last epoch may be a fraction.
  Schedule(const ScheduleOptions& config, double base_lr, double epochs, int64_t steps_per_epoch);

  // `step` counts from 0 over all epochs.
  double lr(int64_t step) const;
  // `epoch` counts from 0; figures of the network after it. Returns the rate after a cut.
  std::optional<double> end_epoch(int64_t epoch, double validation_loss, double accuracy);
  // Whether end_epoch() must be called for every epoch.
  bool watches_validation() const { return config_.kind == ScheduleKind::kPlateau; }

  std::optional<ScheduleState> state() const;  // absent: the steps alone decide
  // The state of another kind of schedule changes nothing. Of a plateau with another metric, the
  // rate's factor alone is taken.
  void restore(const std::optional<ScheduleState>& state);

 private:
  std::string metric() const;  // "loss, min", which a plateau watches
  double warmup_factor(int64_t step) const;
  double after_warmup(int64_t epoch) const;
  double factor(int64_t step) const;

  ScheduleOptions config_;
  double base_lr_;
  double epochs_;
  int64_t steps_per_epoch_;
  Plateau plateau_;
  double plateau_factor_ = 1;
};

}  // namespace lockstep
