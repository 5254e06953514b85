// Does what a program adds to its training: console, logs, checkpoints, numerics, traces and
// planted faults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/observe/fault.h"
#include "engine/observe/step_timeline.h"
#include "engine/training.h"
#include "trainers/loop/evaluation_outputs.h"
#include "trainers/loop/numerics_guard.h"
#include "trainers/loop/training_parts.h"
#include "trainers/loop/training_saves.h"
#include "trainers/report/run_directory.h"
#include "trainers/report/run_log.h"

namespace lockstep::trainers {

class RunObserver final : public TrainingObserver {
 public:
  // `parts` must outlive this. Errors: UsageError for a fault in a layer that the network lacks.
  explicit RunObserver(const TrainingParts& parts);

  // The places where rank 0 writes what the run leaves; null on other ranks.
  struct Outputs {
    RunDirectory* directory = nullptr;
    const EpochCsv* csv = nullptr;
    const RunRecord* record = nullptr;  // of the run's settings
    TrainingSaves::Places saves = {};
  };
  // Call this before the first step. Borrows both.
  void open(const Outputs& outputs, Training& training);
  // Waits for the last save, and completes the result with what a program knows. Call it at the
  // end of the training.
  void end(TrainingResult& result);
  // Waits for the last save of a training that ended in an error of all ranks.
  void give_up() { saves_.finish(); }

  // The mistakes of the last evaluation, without pictures.
  const Mistakes& mistakes() const { return mistakes_; }
  // The last report of the run.
  const std::optional<NumericsReport>& numerics() const { return numerics_.report(); }

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

  void begin_epoch(const Training& training) override;
  void after_step(Training& training) override;
  bool wants_figures(const Training& training) override;
  void on_overflow(const std::string& text) override { parts_.console.info(text); }
  void on_scale(Training& training, const ScaledStep& scaled) override;
  void on_figures(Training& training, const StepMetrics& metrics) override;
  void on_infinite_loss(Training& training,
                        float loss,
                        int64_t step,
                        const DivergedError& error) override;
  void end_step(Training& training) override;
  EvaluationObserver* begin_evaluation() override;
  void end_evaluation(const Evaluation& evaluation) override;
  void end_epoch(Training& training, const EpochEvaluation* evaluation) override;

 private:
  std::optional<RunEvents> open_events(const StepRange& range) const;  // rank 0's
  bool draws_histograms_after(int64_t step) const;
  void log_evaluation(const Training& training, const EpochEvaluation& found);
  void log_epoch(const Training& training, const std::optional<Evaluation>& evaluation);
  void tell_schedules(const Training& training, const EpochEvaluation& found);

  const TrainingParts& parts_;
  Outputs outputs_;
  Training* training_ = nullptr;
  RunLog log_;
  NumericsGuard numerics_;
  StepTimeline trace_;
  std::optional<LayerFault> layer_fault_;
  TrainingSaves saves_;
  std::optional<OutputCollector> collector_;  // of the evaluation under way
  Mistakes mistakes_;
  float gradient_scale_ = 1;  // of the step's gradients
  double first_step_s_ = 0;   // from process start to the end of its first step
};

}  // namespace lockstep::trainers
