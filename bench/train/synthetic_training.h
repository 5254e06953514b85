// Whole training steps on one batch of random images.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/train/options.h"
#include "bench/train/report.h"
#include "comm/connect.h"
#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/config/resolved_run.h"
#include "trainers/loop/exchange_log.h"
#include "trainers/loop/step_figures.h"
#include "trainers/model/models.h"
#include "trainers/model/weights.h"

namespace lockstep::bench {

// Forward, cross-entropy, backward, exchange of gradients, SGD with momentum 0.9 and weight decay
// 1e-4. Borrows communicator, stream and model.
class SyntheticTraining {
 public:
  // The images and labels depend on their place in the global batch alone. A collective call.
  SyntheticTraining(const trainers::ResolvedRun& run,
                    const trainers::ModelOptions& network,
                    Communicator& ranks,
                    Stream& stream,
                    nn::Module& model);

  // Returns the seconds that it took.
  double step();
  // Exchanges the totals of the steps since the last call. A collective call.
  trainers::WindowTotals exchange_totals() { return window_.exchange(ranks_, false); }

 private:
  struct Batch {
    Tensor images;  // u8 (N,C,H,W)
    Tensor labels;  // i32 (N)
    Shards shards;
  };
  static Batch make_batch(const trainers::BatchDivision& cut,
                          const trainers::ModelOptions& network,
                          int rank);

  Communicator& ranks_;
  Stream& stream_;
  nn::Module& model_;
  trainers::TimedPeers batch_norm_peers_;
  Batch batch_;
  const Precision precision_;
  const trainers::StoredWeights stored_;
  comm::GradientReducer reducer_;
  nn::Sgd optimizer_;
  trainers::StepWindow window_;
};

// Measures what `options` ask for and says so: on standard output, or on standard error where
// options.json wants the other for itself. Rank 0 prints. A collective call. Errors: UsageError for
// a network that there is not, and for shards that do not fit; DivergedError for a loss that is not
// finite.
SyntheticReport measure_training(const SyntheticOptions& options,
                                 const comm::Launch& launch,
                                 const comm::Connection& connection);

}  // namespace lockstep::bench
