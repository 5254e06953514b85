// A checkpoint on disk: two safetensors files. stepN.safetensors is the model alone, so that
// PyTorch and timm load it by name and strictly; stepN.state.safetensors holds the optimizer's
// tensors. Each has the whole record as metadata and a digest over all of itself. The second names
// the digest of the first and is written after it: a crash between the two leaves no pair.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/checkpoint/state_tensors.h"

namespace lockstep::trainers {

struct Checkpoint {
  CheckpointRecord record;
  FileTensors model;
  FileTensors optimizer;
};

std::string model_file_name(int64_t step);  // "step0001180.safetensors"
// "x.safetensors" -> "x.state.safetensors" beside it.
std::filesystem::path state_file_of(const std::filesystem::path& model_file);

// Sets record.model_digest and writes the file of the model. Atomic. Errors: EnvironmentError.
void write_model(const std::filesystem::path& file, CheckpointRecord& record, FileTensors model);
// The second file. Requires: write_model() of the same record before.
void write_state(const std::filesystem::path& model_file,
                 const CheckpointRecord& record,
                 FileTensors optimizer);

// The pair of files of a model file's name. Errors: CheckpointError with the first problem as
// why(): one is missing or cannot be read, breaks the format, has another major version, differs in
// any bit from what was written, or belongs to another pair.
Checkpoint read_checkpoint(const std::filesystem::path& model_file);

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
