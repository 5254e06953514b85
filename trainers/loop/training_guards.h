// Guards that stop a training that went wrong: losses that are not finite, replicas that differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/replicas.h"
#include "core/communicator.h"
#include "engine/observe/black_box.h"
#include "engine/step/step_figures.h"
#include "engine/update/weight_update.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/loop/training_parts.h"
#include "trainers/report/run_log.h"

namespace lockstep::trainers {

// Watches the losses and loss scales of a training. Ends the training, or writes a report, when
// they are not finite.
class NumericsGuard {
 public:
  // Both must outlive this.
  NumericsGuard(const TrainingParts& parts, RunLog& log);

  // Sets the loss scale with which the run starts or continues.
  void start(const ScaledStep& scaled) { scaled_ = scaled; }
  void begin_step(int64_t step) {  // from 1
    watch_.begin_step(step, scaled_.scale, scaled_.consecutive_skips);
  }
  void begin_micro_step(const Var& images) { watch_.begin_micro_step(images); }
  // The listener for the tapes of the step; null where the step is not watched.
  TapeListener* listener() { return watch_.listener(); }

  // Reads the loss scale after `steps` steps and reports skipped steps. A collective call where
  // many were skipped.
  // Errors: as WeightUpdate::read_scale.
  void read_scale(WeightUpdate& update, int64_t steps);
  // Errors: DivergedError for a loss that is not finite, except in a replay, which has then found
  // what it looked for.
  void check_losses(const WindowTotals& totals, int64_t steps, int epoch, double lr);

  const ScaledStep& scaled() const { return scaled_; }  // as last read
  const std::optional<NumericsReport>& report() const { return report_; }
  // Whether a replay has found what it looked for.
  bool ends_replay() const { return parts_.replay && report_; }

 private:
  // A collective call.
  void make_report(Trouble trouble, std::string what, int64_t step);

  const TrainingParts& parts_;
  RunLog& log_;
  NumericsWatch watch_;
  ScaledStep scaled_;
  std::optional<NumericsReport> report_;  // the last one
};

// Checks that the ranks still hold the same network. Shares the memory of parameters and optimizer
// state.
class ReplicaCheck {
 public:
  ReplicaCheck(const nn::Module& model, const nn::Optimizer& optimizer);

  // A collective call. Errors: DivergedError naming rank, tensor and first element that differ.
  void compare(Communicator& ranks, int64_t step) const;

 private:
  std::vector<comm::NamedTensor> tensors_;
};

}  // namespace lockstep::trainers
