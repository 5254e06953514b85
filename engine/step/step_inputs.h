// Inputs of the steps of a training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/device_exchange.h"
#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "data/dataset.h"
#include "engine/settings/batch_division.h"
#include "engine/settings/image_changes.h"
#include "engine/settings/training_settings.h"
#include "engine/update/weight_update.h"
#include "nn/functional.h"
#include "nn/module.h"

namespace lockstep {

// Functions of the program around the training. Each may be empty.
struct StepHooks {
  std::function<void(const std::string& text)> warn = {};  // on rank 0, of a skipped image
  std::function<bool()> asked_to_stop = {};                // whether this rank was
  comm::BucketExchange exchange = {};                      // instead of the settings'
  UpdateHooks update = {};
  nn::LossFunction loss = {};  // instead of the settings'
};

// References are borrowed.
struct StepInputs {
  const TrainingSettings& settings;
  const BatchDivision& batch;
  const data::DatasetPair& data;
  Communicator& ranks;
  Stream& stream;
  nn::Module& model;
  ImageChanges changes = {};
  bool as_graph = false;  // on CUDA, a step is given to the device as one recorded graph
  StepHooks hooks = {};
  comm::MakeDeviceExchange exchange = {};  // how gradients on GPUs travel; empty: over `ranks`
  int64_t pool_bytes = 0;  // on a GPU, of what steps and evaluations make; 0: not known
};

// Whether a step can be given to the device as one recorded graph. It can when it has one
// micro-step and needs no host, neither to exchange gradients nor to gather the statistics of batch
// norm. `over_nccl`: what sums gradients.
bool fits_one_graph(const TrainingSettings& settings, const BatchDivision& batch, bool over_nccl);

// Counted from step 0 of epoch 0.
struct StepRange {
  int64_t per_epoch = 0;
  int64_t first = 0;  // of this process
  int64_t end = 0;
};

}  // namespace lockstep
