// Writes a training's files from a snapshot of its state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/folder.h"
#include "engine/state/snapshot.h"
#include "trainers/checkpoint/checkpoint_record.h"

namespace lockstep::trainers {

struct RecordedSnapshot : Snapshot {
  CheckpointRecord record;
};

// Writes both files of the checkpoint, as write_checkpoint() does, with names from its step.
void write_snapshot(const Folder& folder, RecordedSnapshot& snapshot);

// The files that a save writes, in this order. best.safetensors and ema.safetensors hold weights
// and buffers, and --keep does not count them.
struct SavedFiles {
  bool average = false;     // ema.safetensors: of the moving average. Requires: an nn::Ema
  bool best = false;        // best.safetensors; before the checkpoint whose record counts on it
  bool checkpoint = false;  // stepN.safetensors and its state; last.safetensors links to it

  bool any() const { return average || best || checkpoint; }
  // The names of the files; the checkpoint has its model's name.
  std::vector<std::string> names(int64_t step) const;
};

struct SaveReport {
  struct Failure {
    std::string what;
    EnvironmentError error;
  };
  std::filesystem::path folder;
  std::vector<Failure> unsaved;    // by name
  std::vector<Failure> untidy;     // work that failed after a successful save
  bool folder_is_removed = false;  // the likely cause of `unsaved`
};

// Writes the files and, once its own checkpoint is complete, removes all but the `keep` newest
// ones. A model leaves the folder only when newer checkpoints are complete. Any thread may call
// this; nothing else may use the snapshot meanwhile.
SaveReport save_files(const Folder& folder,
                      const SavedFiles& files,
                      int64_t keep,
                      RecordedSnapshot& snapshot);

// Removes all checkpoints but the `keep` newest up to `step`. Also removes those after `step`,
// which an abandoned continuation made. A model that cannot be removed keeps its state, because a
// model alone would stay forever. Errors: EnvironmentError.
void remove_superseded(const Folder& folder, int64_t step, int64_t keep);

// Removes what a killed process left: unfinished writes, and states whose model never took its
// place. Requires: no other process writes there. Errors: EnvironmentError.
void remove_leftovers(const Folder& folder);

}  // namespace lockstep::trainers
