// A checkpoint on disk: two safetensors files. stepN.safetensors is the model alone, so that
// PyTorch and timm load it by name and strictly; stepN.state.safetensors holds the optimizer's
// tensors. Each has the whole record as metadata and a digest over all of itself. The second names
// the digest of the first and is written after it: a crash between the two leaves no pair.
#pragma once

#include <filesystem>
#include <string>

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

}  // namespace lockstep::trainers
