// Watches numerics, traces and plants faults within the steps of a program's run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/observe/fault.h"
#include "engine/observe/step_timeline.h"
#include "engine/step/step_observer.h"
#include "trainers/loop/training_guards.h"
#include "trainers/loop/training_parts.h"

namespace lockstep::trainers {

class RunObserver final : public StepObserver {
 public:
  // Both must outlive this. Errors: UsageError for a fault in a layer that the network lacks.
  RunObserver(const TrainingParts& parts, RunLog& log);

  NumericsGuard& numerics() { return numerics_; }
  const NumericsGuard& numerics() const { return numerics_; }
  StepTimeline& trace() { return trace_; }

  void begin_step(int64_t step) override;
  bool needs_host() override;
  TapeListener* listener(const Shards& shards) override;
  void begin_micro_step(const Var& images) override { numerics_.begin_micro_step(images); }
  void begin_pass(Pass pass) override { trace_.begin_pass(pass); }
  void end_backward() override { trace_.end_pass(); }
  void before_sums() override { delay(parts_.fault, parts_.ranks.rank()); }
  void in_phase(std::string_view name, FunctionRef<void()> work) override {
    trace_.in_phase(name, work);
  }
  Timeline* timeline() override { return trace_.timeline(); }

 private:
  const TrainingParts& parts_;
  NumericsGuard numerics_;
  StepTimeline trace_;
  std::optional<LayerFault> layer_fault_;
  int64_t step_ = 0;
};

}  // namespace lockstep::trainers
