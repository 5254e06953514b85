// Saves a training: checkpoints, and the state that each host keeps in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/step/training_step.h"
#include "trainers/checkpoint/checkpoint_writer.h"
#include "trainers/checkpoint/kept_state.h"
#include "trainers/loop/training_parts.h"

namespace lockstep::trainers {

// Borrows all. A replay saves nothing. Thread safety: none.
class TrainingSaves {
 public:
  // Null on ranks that have none.
  struct Places {
    CheckpointWriter* checkpoints = nullptr;  // rank 0's
    StateKeeper* keeper = nullptr;            // of the first rank of each host
  };

  TrainingSaves(const TrainingParts& parts, TrainingStep& step) : parts_(parts), step_(step) {}

  // Allocates the memory of a state. Call it before the first step. Errors: EnvironmentError.
  void open(const Places& places);

  // Whether a checkpoint, or a state kept in memory, is due after this step.
  bool checkpoint_due(int64_t step) const;
  bool kept_state_due(int64_t step) const;

  // The files that the next save() writes, of the state after the last step. Empty after each
  // save().
  SavedFiles& files() { return files_; }
  // All below are collective calls, and the ranks hold the same weights.
  // Begins to write files(). The step's work goes on meanwhile.
  void save(const TrainingPosition& position);
  // Continues the save, after a step that saves nothing. Not a collective call.
  void advance();
  // Waits until the last save is complete. Returns on rank 0 whether the last checkpoint was saved;
  // nothing where there was none.
  std::optional<bool> finish();
  // Keeps the state in memory, once the last save is complete: a restart from this state counts on
  // the best weights and checkpoints of the steps before.
  void keep(const TrainingPosition& position);

 private:
  SnapshotSource state() { return {parts_.stream, parts_.model, step_.update().optimizer()}; }

  const TrainingParts& parts_;
  TrainingStep& step_;
  Places places_;
  SavedFiles files_;
};

}  // namespace lockstep::trainers
