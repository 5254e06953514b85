// Whole training steps on random images.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/train/options.h"
#include "bench/train/report.h"
#include "comm/connect.h"
#include "comm/device_exchange.h"
#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "engine/step/exchange_log.h"
#include "engine/step/step_figures.h"
#include "engine/step/step_graph.h"
#include "engine/step/training_batches.h"
#include "engine/update/weight_update.h"
#include "nn/module.h"
#include "trainers/config/run_request.h"
#include "trainers/model/models.h"

namespace lockstep::bench {

// A step is forward, cross-entropy, backward, exchange of gradients and update of the weights, as
// in the trainers. On CUDA it runs as one graph where the run allows that.
class SyntheticTraining {
 public:
  // `run`: as run_request() asks for it. Borrows communicator, stream and model.
  struct Parts {
    const trainers::ResolvedRun& run;
    const trainers::ModelOptions& network;
    Communicator& ranks;
    Stream& stream;
    nn::Module& model;
    comm::MakeDeviceExchange exchange = {};  // of gradients between GPUs; empty: by the host
    TapeListener* listener = nullptr;        // of one batch that all steps use
    int64_t input_steps =
        0;  // so many steps get their images from the loader; 0: all use one batch
  };

  // The images and labels depend on their place in the global batch alone. A collective call.
  explicit SyntheticTraining(const Parts& parts);

  // Takes a step. On CUDA it does not wait for the device.
  void step();
  // Exchanges the totals of the steps since the last call. A collective call.
  WindowTotals exchange_totals() { return window_.exchange(ranks_, false); }

 private:
  // On the stream's device.
  struct Batch {
    Tensor images;   // u8 (N,C,H,W)
    Tensor labels;   // i32 (N)
    Tensor numbers;  // i64 (N)
    Shards shards;
    TapeListener* listener = nullptr;
  };
  static Batch make_batch(const Parts& parts);
  TrainingBatches::MicroStep next_batch();

  Communicator& ranks_;
  Stream& stream_;
  nn::Module& model_;
  const Precision precision_;
  TimedPeers batch_norm_peers_;
  comm::GradientReducer reducer_;
  WeightUpdate update_;
  TrainingBatches::GroupPeers peers_;
  std::optional<TrainingBatches> loader_;
  Batch batch_;
  StepGraph graph_;
  StepWindow window_;
};

// Measures what `options` ask for and prints the figures: on standard output, or on standard error
// when options.json reserves standard output for the JSON. Rank 0 prints. A collective call.
// Errors: UsageError for an unknown network and for shards that do not fit; DivergedError for a
// loss that is not finite; EnvironmentError for a device that does not exist.
SyntheticReport measure_training(const SyntheticOptions& options,
                                 const comm::Launch& launch,
                                 const comm::Connection& connection);

}  // namespace lockstep::bench
