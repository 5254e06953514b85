// A checkpoint on disk is two safetensors files. stepN.safetensors is the model alone, so that
// PyTorch and timm load it by name and strictly; stepN.state.safetensors holds the optimizer's
// tensors. Each has the whole record as metadata and a digest over its content. The state file also
// names the model's digest. It takes its place first, so that a crash never leaves a model without
// its state: where the state is missing, somebody removed it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/folder.h"
#include "engine/state/state_tensors.h"
#include "trainers/checkpoint/checkpoint_record.h"

namespace lockstep::trainers {

struct Checkpoint {
  CheckpointRecord record;
  FileTensors model;
  FileTensors optimizer;
};

std::string model_file_name(int64_t step);  // "step0001180.safetensors"
// Returns the step in such a name; nothing for other names.
std::optional<int64_t> step_of_model(const std::string& name);
// "x.safetensors" -> "x.state.safetensors" beside it, and the name back; nothing for other names.
std::filesystem::path state_file_of(const std::filesystem::path& model_file);
std::optional<std::string> model_of_state(const std::string& name);

// Sets record.model_digest and writes both files: `model_file` in the folder, and its state. Both
// are on the disk before the first takes its place. Errors: EnvironmentError; the files that were
// there before stay as they were.
void write_checkpoint(const Folder& folder,
                      const std::string& model_file,
                      CheckpointRecord& record,
                      const FileTensors& model,
                      const FileTensors& optimizer);
// Sets record.model_digest and writes a file of weights alone, as write_checkpoint() does.
void write_weights(const Folder& folder,
                   const std::string& file,
                   CheckpointRecord& record,
                   const FileTensors& model);

// Reads a model file and its state file. Errors: CheckpointError with the first problem as why():
// one is missing or cannot be read, breaks the format, has another major version, differs in any
// bit from what was written, or belongs to another pair.
Checkpoint read_checkpoint(const std::filesystem::path& model_file);

struct StoredCheckpoint {
  int64_t step = 0;
  std::filesystem::path model_file;
};

// Lists the checkpoints with both files, newest first; none where there is no such folder. Errors:
// EnvironmentError for a folder that may not be read.
std::vector<StoredCheckpoint> list_checkpoints(const std::filesystem::path& folder);
// Lists the models whose state is missing, newest first.
std::vector<StoredCheckpoint> list_lone_models(const std::filesystem::path& folder);

struct SoundCheckpoint {
  std::filesystem::path model_file;
  Checkpoint checkpoint;
};

// Returns the newest checkpoint that read_checkpoint() accepts, and adds a note with name and first
// problem for each newer one. Returns nothing where there is none.
std::optional<SoundCheckpoint> newest_sound(const std::filesystem::path& folder,
                                            std::vector<std::string>& notes);

}  // namespace lockstep::trainers
