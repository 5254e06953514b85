// A checkpoint on disk: two safetensors files. stepN.safetensors is the model alone, so that
// PyTorch and timm load it by name and strictly; stepN.state.safetensors holds the optimizer's
// tensors. Each has the whole record as metadata and a digest over all of itself. The second names
// the digest of the first. It takes its place first, so that no crash leaves a model without its
// state: where that is missing, somebody took it away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/folder.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/checkpoint/state_tensors.h"

namespace lockstep::trainers {

struct Checkpoint {
  CheckpointRecord record;
  FileTensors model;
  FileTensors optimizer;
};

std::string model_file_name(int64_t step);  // "step0001180.safetensors"
// The step of such a name.
std::optional<int64_t> step_of_model(const std::string& name);
// "x.safetensors" -> "x.state.safetensors" beside it, and the name back; nothing for other names.
std::filesystem::path state_file_of(const std::filesystem::path& model_file);
std::optional<std::string> model_of_state(const std::string& name);

// Sets record.model_digest and writes both files, `model_file` of the folder and its state. Both
// are on the disk before the first takes its place. Errors: EnvironmentError; then the files that
// were there are as before.
void write_checkpoint(const Folder& folder,
                      const std::string& model_file,
                      CheckpointRecord& record,
                      const FileTensors& model,
                      const FileTensors& optimizer);
// Likewise a file of weights alone.
void write_weights(const Folder& folder,
                   const std::string& file,
                   CheckpointRecord& record,
                   const FileTensors& model);

// The pair of files of a model file's name. Errors: CheckpointError with the first problem as
// why(): one is missing or cannot be read, breaks the format, has another major version, differs in
// any bit from what was written, or belongs to another pair.
Checkpoint read_checkpoint(const std::filesystem::path& model_file);

struct StoredCheckpoint {
  int64_t step = 0;
  std::filesystem::path model_file;
};

// Lists the checkpoints with both files, newest first; none where there is no such folder. Errors:
// EnvironmentError for a folder that may not be read.
std::vector<StoredCheckpoint> list_checkpoints(const std::filesystem::path& folder);
// Likewise the models whose state is missing.
std::vector<StoredCheckpoint> list_lone_models(const std::filesystem::path& folder);

struct SoundCheckpoint {
  std::filesystem::path model_file;
  Checkpoint checkpoint;
};

// The newest one that read_checkpoint() accepts; for each newer one a note with its name and first
// problem. Nothing where there is none.
std::optional<SoundCheckpoint> newest_sound(const std::filesystem::path& folder,
                                            std::vector<std::string>& notes);

}  // namespace lockstep::trainers
