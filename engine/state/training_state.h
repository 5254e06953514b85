// The state of a training between two steps, in one safetensors file: another process, on another
// number of ranks, goes on from it with the same bits.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/safetensors.h"
#include "engine/state/state_tensors.h"
#include "engine/update/training_position.h"

namespace lockstep {

struct TrainingState {
  FileTensors model;
  FileTensors optimizer;
  TrainingPosition position;  // steps, applied, epoch, schedule and loss scale
  // Settings that must be the same where the training goes on, by name.
  std::map<std::string, std::string> settings;
};

// Names of tensors begin with "model/" or "optimizer/".
Safetensors to_file(const TrainingState& state);
// Errors: CheckpointError for a file that to_file() has not made. `name`: of the file.
TrainingState training_state_of(const Safetensors& file, const std::string& name);

// The position alone, as metadata have it.
std::map<std::string, std::string> to_texts(const TrainingPosition& position);
// Errors: CheckpointError for other texts.
TrainingPosition position_of(const std::map<std::string, std::string>& texts,
                             const std::string& name);

}  // namespace lockstep
