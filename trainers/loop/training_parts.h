// The parts that a program's training works with, and the steps that it takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "trainers/debug/fault.h"
#include "trainers/debug/replay_plan.h"
#include "trainers/loop/step_inputs.h"
#include "trainers/report/console.h"
#include "trainers/report/training_position.h"

namespace lockstep::trainers {

struct TrainingParts : StepInputs {
  Console& console;  // borrowed
  std::optional<Fault> fault = {};
  std::optional<TrainingPosition> start = {};  // of an earlier process; its weights are in `model`
  std::optional<ReplayTarget> replay = {};

  // Ranks of the run; a replay may have fewer.
  int64_t run_ranks() const { return replay ? replay->ranks : run.batch.ranks; }
};

// Fills in what a program adds to the step: warnings on the console, stops by signals, and a fault
// of the exchange. Borrows the console.
StepInputs program_step_parts(StepInputs parts, Console& console, const std::optional<Fault>& fault);

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
