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

#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/checkpoint/state_tensors.h"
#include "trainers/report/console.h"

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

// Lists the checkpoints with both files, newest first; none where there is no such folder. Errors:
// EnvironmentError for a folder that may not be read.
std::vector<StoredCheckpoint> list_checkpoints(const std::filesystem::path& folder);

struct SoundCheckpoint {
  std::filesystem::path model_file;
  Checkpoint checkpoint;
};

// The newest one that read_checkpoint() accepts; for each newer one a note with its name and first
// problem. Nothing where there is none.
std::optional<SoundCheckpoint> newest_sound(const std::filesystem::path& folder,
                                            std::vector<std::string>& notes);

// Saves checkpoints while training goes on, on rank 0. A save that fails (disk full, read-only,
// quota) leaves the files of earlier ones as they are, costs a warning that names the newest sound
// checkpoint, and does not stop the training. Borrows the console.
class CheckpointWriter {
 public:
  struct Options {
    std::filesystem::path folder;
    int64_t keep = 3;                      // newest checkpoints that stay
    std::filesystem::path newest_sound{};  // of an earlier process in this folder
  };

  // Clears the folder of what a killed process left.
  CheckpointWriter(Options options, RunIdentity run, Console& console);

  // Writes stepN.safetensors and its state file, points last.safetensors at it, and removes those
  // that are superseded.
  void save(const nn::Module& model, const nn::Optimizer& optimizer, const TrainingPosition& at);
  // Writes best.safetensors: weights and buffers, a file of its own whatever --keep removes. To be
  // called before the save() whose record counts on it.
  void save_best(const nn::Module& model, const TrainingPosition& at);
  // Likewise ema.safetensors, while the model is the weights' moving average.
  void save_average(const nn::Module& model, const TrainingPosition& at);

  // Whether the last save() succeeded; false before the first.
  bool last_is_saved() const { return last_is_saved_; }

 private:
  void save_weights(const char* name,
                    const nn::Module& model,
                    const TrainingPosition& at,
                    const RunIdentity& run);
  template <class Write>
  bool try_to_save(const std::filesystem::path& file, Write&& write);

  const Options options_;
  const RunIdentity run_;
  Console& console_;
  std::filesystem::path newest_sound_;
  bool last_is_saved_ = false;
};

}  // namespace lockstep::trainers
