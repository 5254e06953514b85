// The training loop.
#pragma once

#include <optional>
#include <span>

#include "engine/results/training_result.h"
#include "engine/state/state_tensors.h"
#include "engine/step/step_figures.h"
#include "engine/step/training_step.h"
#include "engine/update/early_stopping.h"
#include "trainers/loop/evaluate_training.h"
#include "trainers/loop/run_observer.h"
#include "trainers/loop/training_parts.h"
#include "trainers/loop/training_saves.h"
#include "trainers/report/run_directory.h"
#include "trainers/report/run_log.h"

namespace lockstep::trainers {

// Trains the model and evaluates it, as the run says.
class Training {
 public:
  // A collective call. Errors: CheckpointError where the training starts from a run with another
  // schedule.
  explicit Training(const TrainingParts& parts);

  std::span<const comm::Bucket> buckets() const { return step_.buckets(); }
  const StepRange& steps() const { return range_; }

  // Loads the optimizer's part of a checkpoint, on rank 0 and before run(). Errors: CheckpointError
  // naming `file` when it is another optimizer's.
  void restore(const FileTensors& optimizer, const std::string& file);

  // The places where rank 0 writes what the run leaves; null on other ranks.
  struct Outputs {
    RunDirectory* directory = nullptr;
    const EpochCsv* csv = nullptr;
    const RunRecord* record = nullptr;  // of the run's settings
    TrainingSaves::Places saves = {};
  };

  // Errors: DivergedError when a loss is not finite or replicas differ; CommError; DataError.
  TrainingResult run(const Outputs& outputs);
  // The mistakes of the last evaluation, without pictures.
  const Mistakes& mistakes() const { return evaluation_.mistakes(); }
  // The last report of the run.
  const std::optional<NumericsReport>& numerics() const { return observer_.numerics().report(); }

 private:
  static constexpr int64_t kMaxSteps = 10;  // between two exchanges of figures

  void share_start();
  void train_epochs();
  void announce_size(int epoch) const;
  void begin_events();
  bool goes_on(const EpochSums& current) const;
  std::optional<RunEvents> open_events() const;  // rank 0's
  void train_step(EpochProgress& epoch);
  void compare_ranks_if_due();
  // `saves`: a checkpoint is due; `keeps`: a state in memory is.
  void save_after_step(EpochProgress& epoch, bool saves, bool keeps);
  bool asked_to_stop() const;
  void read_scale();
  void exchange_figures(EpochProgress& epoch);
  void synchronize_replicas();
  void ask_for_checkpoint();
  void end_epoch(const EpochProgress& epoch);
  // Returns nothing when a signal came.
  std::optional<Evaluation> evaluate_epoch(const EpochProgress& epoch);
  // Passes the evaluation of a whole epoch to the schedule and to early stopping. Returns true when
  // the training stops early.
  bool update_schedules(const Evaluation& evaluation, const EpochProgress& epoch);
  void compare_with_best(const Evaluation& evaluation, int epoch);
  void log_epoch(const EpochProgress& epoch, const std::optional<Evaluation>& evaluation);
  bool evaluates_after(int epoch) const;
  bool draws_histograms_after(int64_t step) const;
  // Whether a finished epoch has been evaluated, which ends it.
  enum class Evaluated : uint8_t { kNo, kYes };
  TrainingPosition position(const EpochProgress& epoch, Evaluated evaluated) const;

  const TrainingParts parts_;
  const StepRange range_;
  Outputs outputs_;
  RunLog log_;
  RunObserver observer_;
  TrainingStep step_;
  EarlyStopping early_stopping_;
  const ReplicaCheck replicas_;
  TrainingSaves saves_;
  TrainingEvaluation evaluation_;
  int64_t stop_interval_ = kMaxSteps;  // steps until ranks ask each other whether to stop
  TrainingResult result_;
};

}  // namespace lockstep::trainers
