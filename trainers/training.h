// The training loop.
#pragma once

#include <optional>

#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "data/dataset.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/console.h"
#include "trainers/evaluate.h"
#include "trainers/fault.h"
#include "trainers/run_config.h"
#include "trainers/run_directory.h"

namespace lockstep::trainers {

struct TrainingResult {
  Evaluation final;
  Evaluation best;
  int best_epoch = 0;  // from 0; the epoch of `best`
  int64_t steps = 0;
  int64_t images = 0;       // trained on, over all ranks
  double training_s = 0;    // in steps, evaluation left out
  double first_step_s = 0;  // from process start to the end of step 1
  bool stopped = false;     // on a signal
};

// Trains `model` as `config` says and evaluates it. Borrows everything; `directory` is rank 0's,
// null elsewhere.
class Training {
 public:
  struct Parts {
    const RunConfig& config;
    const data::DatasetPair& data;
    Communicator& ranks;
    Stream& stream;
    nn::Module& model;
    Console& console;
    const RunDirectory* directory;
    std::optional<Fault> fault;
  };

  explicit Training(const Parts& parts);

  // Errors: DivergedError when a loss is not finite or replicas differ; CommError; DataError.
  TrainingResult run();

 private:
  class Epoch;  // progress of the epoch in hand

  bool train_epoch(int epoch);  // false: the run ends with it
  void train_step(Epoch& epoch);
  void compare_notes(Epoch& epoch);
  void end_epoch(int epoch);
  uint64_t synchronize_replicas(int epoch);  // the digest that all ranks agree on

  Parts p_;
  comm::GradientReducer reducer_;
  nn::Sgd optimizer_;
  const kernels::NormalizeImageParams normalization_;
  Communicator* const peers_;  // where a batch-norm group spans ranks
  int64_t steps_per_epoch_;
  int64_t end_step_;
  TrainingResult result_;
};

}  // namespace lockstep::trainers
