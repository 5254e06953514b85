// Saves checkpoints while training goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "core/folder.h"
#include "core/function_ref.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// Rank 0 has one. A save that fails (disk full, read-only, quota) leaves the files of earlier ones
// as they are, costs a warning that names the newest sound checkpoint, and does not stop the
// training. A model leaves the folder only when newer checkpoints are complete. Borrows the
// console.
class CheckpointWriter {
 public:
  struct Options {
    // Where the next file is written; it may change when a folder was removed. Errors:
    // EnvironmentError.
    std::function<const Folder&()> folder;
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
  bool try_to_save(const std::string& name, FunctionRef<void(const Folder&)> write);
  std::string newest_text() const;
  // After a save, whose success it does not change: `what` is said once if it fails.
  void tidy(const std::string& what, FunctionRef<void(const Folder&)> body);

  const Options options_;
  const RunIdentity run_;
  Console& console_;
  std::filesystem::path newest_sound_;
  bool last_is_saved_ = false;
  std::set<std::string> said_;  // of tidy()
};

}  // namespace lockstep::trainers
