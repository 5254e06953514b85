// The figures of the epoch in hand.
#pragma once

#include <chrono>
#include <cstdint>

#include "trainers/loop/step_window.h"
#include "trainers/output/progress.h"

namespace lockstep::trainers {

class EpochProgress {
 public:
  // `number` counts from 0; the clock starts.
  EpochProgress(int number, int64_t steps) : number_(number), steps_(steps) {}

  int number() const { return number_; }
  int64_t steps() const { return steps_; }
  int64_t done() const { return done_; }
  int64_t images() const { return images_; }  // over all ranks, up to the last update()
  double seconds() const;

  // Of a step: all its time, and the part of it that went into waiting for data.
  void end_step(double step_s, double data_s);
  // What the steps since the last call add, as the log line shows it. `steps_left`: of the run.
  StepMetrics update(const WindowTotals& totals, int64_t steps_left, double lr);

 private:
  using Clock = std::chrono::steady_clock;

  const int number_;
  const int64_t steps_;
  const Clock::time_point start_ = Clock::now();
  int64_t done_ = 0;
  double window_start_s_ = 0;
  double step_s_ = 0, data_s_ = 0, data_sum_s_ = 0;
  double loss_sum_ = 0;
  int64_t correct1_ = 0, correct5_ = 0, images_ = 0;
};

}  // namespace lockstep::trainers
