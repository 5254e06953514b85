// The checkpoints of a run: which there are, which is the newest, which go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainers/checkpoint/checkpoint_file.h"

namespace lockstep::trainers {

struct StoredCheckpoint {
  int64_t step = 0;
  std::filesystem::path model_file;
};

// Those with both files, newest first. None where there is no such folder. Errors: EnvironmentError
// for one that may not be read.
std::vector<StoredCheckpoint> list_checkpoints(const std::filesystem::path& folder);

struct SoundCheckpoint {
  std::filesystem::path model_file;
  Checkpoint checkpoint;
};

// The newest one that read_checkpoint() accepts; for each newer one a note with its name and first
// problem. Nothing where there is none.
std::optional<SoundCheckpoint> newest_sound(const std::filesystem::path& folder,
                                            std::vector<std::string>& notes);

// Points last.safetensors at this checkpoint.
void mark_last(const std::filesystem::path& model_file);

// Removes what a killed process left: unfinished writes, and models whose state was not yet
// written. Requires: no other process writes there.
void remove_leftovers(const std::filesystem::path& folder);

// Removes all but the `keep` newest up to `step`, and those after it: they were made by a
// continuation that was given up. What cannot be removed stays.
void remove_superseded(const std::filesystem::path& folder, int64_t step, int64_t keep);

}  // namespace lockstep::trainers
