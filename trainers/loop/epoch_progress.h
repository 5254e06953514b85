// The figures of the epoch in hand.
#pragma once

#include <chrono>
#include <cstdint>

#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/loop/step_window.h"
#include "trainers/report/progress.h"

namespace lockstep::trainers {

class EpochProgress {
 public:
  // `number` counts from 0; the clock starts. `before`: of an earlier process, which did a part.
  EpochProgress(int number, int64_t steps, const EpochSums& before = {})
      : number_(number), steps_(steps), before_(before), sums_(before) {}

  int number() const { return number_; }
  int64_t steps() const { return steps_; }
  int64_t done() const { return sums_.steps; }
  const EpochSums& sums() const { return sums_; }  // steps apart, up to the last update()
  // Without what came before.
  int64_t images() const { return sums_.images - before_.images; }
  double seconds() const;

  // Adds a step's time, and the part of it that went into waiting for data.
  void end_step(double step_s, double data_s);
  // Adds the steps since the last call and returns the log line's figures. `steps_left`: of the
  // run.
  StepMetrics update(const WindowTotals& totals, int64_t steps_left, double lr);

 private:
  using Clock = std::chrono::steady_clock;

  const int number_;
  const int64_t steps_;
  const EpochSums before_;
  const Clock::time_point start_ = Clock::now();
  EpochSums sums_;
  double window_start_s_ = 0;
  double step_s_ = 0, data_s_ = 0, data_sum_s_ = 0;
};

}  // namespace lockstep::trainers
