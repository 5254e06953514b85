// The loop of a training: epochs of steps, their figures and evaluations, until it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/evaluation/evaluate.h"
#include "engine/results/training_result.h"
#include "engine/settings/early_stopping_config.h"
#include "engine/step/step_figures.h"
#include "engine/step/training_step.h"
#include "engine/training_observer.h"
#include "engine/update/early_stopping.h"
#include "engine/update/replica_check.h"
#include "engine/update/training_position.h"

namespace lockstep {

// The settings of a training's loop.
struct TrainingPlan {
  StepRange range = {};
  EvaluationTask test;            // without its observer
  int64_t evaluation_epochs = 1;  // between evaluations; 0: those alone that a schedule needs
  EarlyStoppingConfig early_stopping = {};
  int64_t figure_steps = 1;                    // between exchanges of figures; at most 10
  std::optional<TrainingPosition> start = {};  // of an earlier process; absent: the beginning
};

// Borrows all but the plan. Every function but the getters is a collective call. Thread safety:
// none.
class Training {
 public:
  // Errors: CheckpointError where the plan starts from a training with another schedule.
  Training(const StepInputs& inputs, const TrainingPlan& plan, TrainingObserver& observer);

  // Gives all ranks rank 0's weights and, where the training goes on from another, its optimizer's
  // state. Call this before the first step, and after other code has written the weights.
  void share_weights();
  // Trains to the end of the range, unless it stops early or is asked to stop. Errors:
  // DivergedError for a loss that is not finite or replicas that differ; CommError; DataError.
  TrainingResult run();
  // Takes one step of run(), in the current epoch or a new one. Requires: steps() < range().end.
  void train_step();
  // Ends run() after this step. All ranks must call this.
  void stop() { result_.stopped = true; }

  // Evaluates the network on the test images, with the memory of the steps. `observer` may be null.
  // Returns nothing where a rank was asked to stop meanwhile.
  std::optional<Evaluation> evaluate(EvaluationObserver* observer);
  // Gives all ranks rank 0's buffers, such as batch norm's statistics; where the ranks exchange no
  // gradients, its weights too.
  void share_buffers();
  // Shares buffers and checks that the ranks hold the same weights. Errors: DivergedError.
  void synchronize_replicas();
  // Reads the loss scale. Waits for the device.
  void read_scale();
  // The next line of progress begins after this step.
  void begin_line() { epoch_->begin_line(); }

  int64_t steps() const { return result_.steps; }  // taken so far, earlier processes included
  const StepRange& range() const { return plan_.range; }
  const EpochProgress& epoch() const { return *epoch_; }    // the current one; there must be one
  const ScaledStep& scaled() const { return scaled_; }      // as last read
  const TrainingResult& result() const { return result_; }  // so far
  // Where another process can go on.
  TrainingPosition position() const;
  TrainingStep& step() { return step_; }
  WeightUpdate& update() { return step_.update(); }
  const WeightUpdate& update() const { return step_.update(); }

 private:
  static constexpr int64_t kMaxSteps = 10;  // between two exchanges of figures

  bool goes_on() const;
  bool in_epoch() const { return epoch_ && epoch_->done() < epoch_->steps(); }
  void begin_epoch();
  bool figures_are_due();
  bool asked_to_stop() const;
  void exchange_figures();
  void check_losses(const std::vector<float>& losses);
  std::optional<Evaluation> evaluate(EvaluationTask task);
  void compare_ranks_if_due();
  void end_epoch();
  bool evaluates_after_epoch() const;
  // Returns nothing where a rank was asked to stop.
  std::optional<EpochEvaluation> evaluate_epoch();
  void follow_schedules(EpochEvaluation& found);

  const StepInputs& inputs_;
  const TrainingPlan plan_;
  TrainingObserver& observer_;
  TrainingStep step_;
  EarlyStopping early_stopping_;
  const ReplicaCheck replicas_;
  SkippedPhotos skipped_tests_;
  std::unique_ptr<EpochProgress> epoch_;  // the current one; null before the first
  bool epoch_is_over_ = false;            // it has been evaluated, if it is to be
  ScaledStep scaled_;
  int64_t stop_interval_ = kMaxSteps;  // steps until ranks ask each other whether to stop
  TrainingResult result_;
};

}  // namespace lockstep
