// The files of one save, from a snapshot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/folder.h"
#include "trainers/checkpoint/snapshot.h"

namespace lockstep::trainers {

// Which of them a save writes, in the order in which they are written. best.safetensors and
// ema.safetensors hold weights and buffers, and --keep does not count them.
struct SavedFiles {
  bool average = false;     // ema.safetensors: of the moving average. Requires: an nn::Ema
  bool best = false;        // best.safetensors; before the checkpoint whose record counts on it
  bool checkpoint = false;  // stepN.safetensors and its state, last.safetensors leads to it

  bool any() const { return average || best || checkpoint; }
  // Their names; the checkpoint's is its model's.
  std::vector<std::string> names(int64_t step) const;
};

struct SaveReport {
  struct Failure {
    std::string what;
    EnvironmentError error;
  };
  std::filesystem::path folder;
  std::vector<Failure> unsaved;    // by name
  std::vector<Failure> untidy;     // what is not done after a save that succeeded
  bool folder_is_removed = false;  // which the first list may be due to
};

// Writes the files, and removes all checkpoints but the `keep` newest once theirs is complete: a
// model leaves the folder only when newer checkpoints are complete. Any thread; nothing else may
// use the snapshot meanwhile.
SaveReport save_files(const Folder& folder,
                      const SavedFiles& files,
                      int64_t keep,
                      Snapshot& snapshot);

// Removes all checkpoints but the `keep` newest up to `step`, and those after it: they were made by
// a continuation that was given up. A model that cannot be removed keeps its state: alone it would
// stay forever. Errors: EnvironmentError.
void remove_superseded(const Folder& folder, int64_t step, int64_t keep);

// Removes what a killed process left: unfinished writes, and states whose model did not take its
// place any more. Requires: no other process writes there. Errors: EnvironmentError.
void remove_leftovers(const Folder& folder);

}  // namespace lockstep::trainers
