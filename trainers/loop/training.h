// The training loop.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "comm/device_exchange.h"
#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "data/dataset.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/checkpoint/checkpoint_writer.h"
#include "trainers/config/resolved_run.h"
#include "trainers/loop/epoch_progress.h"
#include "trainers/loop/evaluate.h"
#include "trainers/loop/exchange_log.h"
#include "trainers/loop/fault.h"
#include "trainers/loop/numerics_watch.h"
#include "trainers/loop/replica_check.h"
#include "trainers/loop/skipped_photos.h"
#include "trainers/loop/step_graph.h"
#include "trainers/loop/step_window.h"
#include "trainers/loop/timed_peers.h"
#include "trainers/loop/training_batches.h"
#include "trainers/loop/weight_update.h"
#include "trainers/output/console.h"
#include "trainers/output/run_directory.h"
#include "trainers/output/run_log.h"
#include "trainers/output/training_result.h"
#include "trainers/replay_plan.h"

namespace lockstep::trainers {

// Trains `model` as `run` says and evaluates it. Borrows everything.
class Training {
 public:
  struct Parts {
    const ResolvedRun& run;
    const data::DatasetPair& data;
    Communicator& ranks;
    Stream& stream;
    nn::Module& model;
    Console& console;
    std::optional<Fault> fault;
    std::optional<TrainingPosition> start{};  // of an earlier process; its weights are in `model`
    std::optional<ReplayTarget> replay{};
    comm::MakeDeviceExchange exchange{};  // how gradients on GPUs travel; empty: over `ranks`
  };

  // A collective call. Errors: CheckpointError for a start under another schedule.
  explicit Training(const Parts& parts);

  std::span<const comm::Bucket> buckets() const { return reducer_.buckets(); }

  // Rank 0's, before run(): the optimizer's part of a checkpoint. Errors: CheckpointError naming
  // `file` when it is another optimizer's.
  void restore(const FileTensors& optimizer, const std::string& file);

  // Where a run leaves its traces: rank 0's, null elsewhere.
  struct Traces {
    const RunDirectory* directory = nullptr;
    CheckpointWriter* checkpoints = nullptr;
  };

  // Errors: DivergedError when a loss is not finite or replicas differ; CommError; DataError.
  TrainingResult run(const Traces& traces);
  // The last one of the run.
  const std::optional<NumericsReport>& numerics() const { return reported_; }

 private:
  struct StepStart {
    comm::BucketTimes::Clock::time_point time = comm::BucketTimes::Clock::now();
    Traffic traffic;
    double batch_norm_s = 0;  // waited for peers, since the beginning of the run
    double data_s = 0;        // waited for images
    data::LoaderSeconds loader{};
  };

  void share_start();
  void train_step(EpochProgress& epoch);
  void step_by_step(const StepStart& start);
  void step_as_graph(const StepStart& start);
  TrainingBatches::MicroStep next_batch();
  // Forward and backward of a micro-step.
  nn::CrossEntropy learn(const Var& images, const Tensor& labels, const Tensor& mix);
  void look_at_scale();
  void log_exchange(const StepStart& start, int64_t images, const comm::ExchangeTimes& exchange);
  void compare_notes(EpochProgress& epoch);
  void check_losses(const WindowTotals& totals, int epoch);
  void report_numerics(Trouble trouble, std::string what, int64_t step);
  void end_epoch(const EpochProgress& epoch);
  void synchronize_replicas();
  EvaluationTask test_task();
  std::optional<Evaluation> measure();  // nothing when a signal asked for a stop meanwhile
  std::optional<Evaluation> measure_average(const EpochProgress& epoch);  // also without --ema
  void log_evaluation(std::string_view split,
                      int epoch,
                      const Evaluation& evaluation,
                      const std::string& digest);
  std::string digest() const;  // rank 0's of the model, "" elsewhere
  void judge(const EpochProgress& epoch, const Evaluation& evaluation);
  bool evaluates_after(int epoch) const;
  bool saves_after(int64_t step) const;
  // An epoch whose steps are done is over once it is evaluated.
  enum class Evaluated : uint8_t { kNo, kYes };
  TrainingPosition position(const EpochProgress& epoch, Evaluated evaluated) const;
  void save(const TrainingPosition& at);

  Parts p_;
  Traces traces_;
  RunLog log_;
  comm::GradientReducer reducer_;
  TimedPeers batch_norm_peers_;
  const bool groups_span_ranks_;
  const int64_t steps_per_epoch_;
  WeightUpdate update_;
  NumericsWatch numerics_;
  std::optional<GradientFault> gradient_fault_;
  const ReplicaCheck replicas_;
  const int64_t first_step_;  // of this process
  const int64_t end_step_;
  TrainingBatches batches_;
  SkippedPhotos skipped_, skipped_in_test_;
  StepGraph graph_;
  StepWindow window_;
  ExchangeLog exchange_log_;
  TrainingResult result_;
  std::optional<NumericsReport> reported_;
  ScaledStep scaled_;  // as last looked at
};

}  // namespace lockstep::trainers
