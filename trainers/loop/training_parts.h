// The parts that a program's training works with, and the steps that it takes.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/observe/fault.h"
#include "engine/step/step_inputs.h"
#include "engine/training.h"
#include "trainers/config/run_request.h"
#include "trainers/debug/replay_plan.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

struct TrainingParts : StepInputs {
  const ResolvedRun& run;  // borrowed, as is the console
  Console& console;
  std::optional<Fault> fault = {};
  std::optional<TrainingPosition> start = {};  // of an earlier process; its weights are in `model`
  std::optional<ReplayTarget> replay = {};

  // Ranks of the run; a replay may have fewer.
  int64_t run_ranks() const { return replay ? replay->ranks : run.batch.ranks; }
};

// Returns the inputs of a run's steps. Borrows its arguments. Errors: UsageError where the run asks
// for changes that do not fit the training images.
StepInputs step_inputs(const ResolvedRun& run,
                       const data::DatasetPair& data,
                       Communicator& ranks,
                       Stream& stream,
                       nn::Module& model);

// Adds what a program does within its steps: warnings on the console, stops by signals, and a fault
// of the exchange. Borrows the console.
StepInputs with_program(StepInputs inputs, Console& console, const std::optional<Fault>& fault);

// The steps of this process. --max-steps counts from the beginning of the run, whichever process
// took the steps.
StepRange step_range(const TrainingParts& parts);

// Returns what the run does besides its steps. Errors: CheckpointError for a start outside of its
// epoch.
TrainingPlan training_plan(const TrainingParts& parts);

// Whether the current epoch of a run that goes on needs nothing but its evaluation.
inline bool begins_with_evaluation(const std::optional<TrainingPosition>& position,
                                   const StepRange& steps) {
  if (!position || position->sums.steps == 0) return false;
  return position->sums.steps == steps.per_epoch || position->steps == steps.end;
}

}  // namespace lockstep::trainers
