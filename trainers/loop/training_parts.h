// The parts that a training works with, and the steps that it takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "comm/device_exchange.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "data/dataset.h"
#include "nn/module.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/config/resolved_run.h"
#include "trainers/debug/fault.h"
#include "trainers/debug/replay_plan.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// All of it is borrowed.
struct TrainingParts {
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
  int64_t pool_bytes = 0;  // on a GPU, of what steps and evaluations make; 0: not known

  // Ranks of the run; a replay may have fewer.
  int64_t run_ranks() const { return replay ? replay->ranks : run.batch.ranks; }
};

// Counted from step 0 of epoch 0.
struct StepRange {
  int64_t per_epoch = 0;
  int64_t first = 0;  // of this process
  int64_t end = 0;
};

// The steps of this process. --max-steps counts from the beginning of the run, whichever process
// took the steps.
inline StepRange step_range(const TrainingParts& parts, int64_t steps_per_epoch) {
  const RunRequest& request = parts.run.request;
  const int64_t begin = request.start_epoch * steps_per_epoch;
  const int64_t first = parts.start ? parts.start->steps : begin;
  int64_t end = request.steps(steps_per_epoch);
  if (request.max_steps) end = std::min(end, begin + *request.max_steps);
  if (parts.replay) end = std::min(end, parts.replay->step);
  return {.per_epoch = steps_per_epoch, .first = first, .end = std::max(end, first)};
}

// Whether the current epoch of a run that goes on needs nothing but its evaluation.
inline bool begins_with_evaluation(const std::optional<TrainingPosition>& position,
                                   const StepRange& steps) {
  if (!position || position->sums.steps == 0) return false;
  return position->sums.steps == steps.per_epoch || position->steps == steps.end;
}

}  // namespace lockstep::trainers
