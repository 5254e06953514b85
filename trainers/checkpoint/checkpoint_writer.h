// Saving while training goes on.
#pragma once

#include <filesystem>
#include <string>

#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// Rank 0's. A save that fails (disk full, read-only, quota) leaves the files of earlier ones as
// they are, costs a warning that names the newest sound checkpoint, and does not stop the training.
// Borrows the console.
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
