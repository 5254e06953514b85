// Saves a training: checkpoints, and the state that each host keeps in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/training.h"
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

  explicit TrainingSaves(const TrainingParts& parts) : parts_(parts) {}

  // Allocates the memory of a state. Call it before the first step. Errors: EnvironmentError.
  void open(const Places& places, Training& training);

  // Whether a checkpoint, or a state kept in memory, is due after this step.
  bool checkpoint_due(int64_t step) const;
  bool kept_state_due(int64_t step) const;

  // All below save the state after the last step. They are collective calls, and the ranks hold the
  // same weights. The step's work goes on while files are written.
  void save(const SavedFiles& files);
  // A checkpoint, with the moving average of the same step.
  void save_checkpoint();
  // Continues the save, after a step that saves nothing. Not a collective call.
  void advance();
  // Waits until the last save is complete. Returns on rank 0 whether the last checkpoint was saved;
  // nothing where there was none.
  std::optional<bool> finish();
  // Keeps the state in memory, once the last save is complete: a restart from this state counts on
  // the best weights and checkpoints of the steps before.
  void keep();

 private:
  SnapshotSource state() const;

  const TrainingParts& parts_;
  Training* training_ = nullptr;
  Places places_;
};

}  // namespace lockstep::trainers
