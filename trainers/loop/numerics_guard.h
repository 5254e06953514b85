// Reports the tensor in which a training's numbers went wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/observe/black_box.h"
#include "engine/update/weight_update.h"
#include "trainers/loop/training_parts.h"
#include "trainers/report/run_log.h"

namespace lockstep::trainers {

// Watches the steps of a training, and writes a report when a loss is not finite or many steps are
// skipped.
class NumericsGuard {
 public:
  // Both must outlive this.
  NumericsGuard(const TrainingParts& parts, RunLog& log);

  // `step` from 1, with the loss scale before it.
  void begin_step(int64_t step, const ScaledStep& scaled) {
    watch_.begin_step(step, scaled.scale, scaled.consecutive_skips);
  }
  void begin_micro_step(const Var& images) { watch_.begin_micro_step(images); }
  // The listener for the tapes of the step; null where the step is not watched.
  TapeListener* listener() { return watch_.listener(); }
  // The loss scale after `steps` steps is known. Returns whether it reported skipped steps, which
  // is a collective call.
  bool end_step(const ScaledStep& scaled, int64_t steps);
  // The loss of a step, from 1, is not finite. A collective call.
  void report_loss(float loss, int64_t step);

  const std::optional<NumericsReport>& report() const { return report_; }  // the last one

 private:
  // A collective call.
  void make_report(Trouble trouble, std::string what, int64_t step);

  const TrainingParts& parts_;
  RunLog& log_;
  NumericsWatch watch_;
  std::optional<NumericsReport> report_;
};

}  // namespace lockstep::trainers
