// Where a run begins: with random weights, with somebody's, or where another process left off.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "nn/module.h"
#include "trainers/checkpoint/resume.h"
#include "trainers/config/run_config.h"
#include "trainers/options/command_line.h"
#include "trainers/output/run_directory.h"

namespace lockstep::trainers {

// Rank 0 reads files and hands out what it found, so that other hosts need not see them.
class StartingPoint {
 public:
  // A collective call. Finds the checkpoint that --resume means and gives `config`, which is not
  // resolved yet, what it says of the run; sets the run directory when the run goes on in one.
  // An error ends all ranks here.
  StartingPoint(RunConfig& config,
                const Options& options,
                const std::string& data_digest,
                Communicator& ranks);

  // On every rank; nothing for a run that begins.
  std::optional<TrainingPosition> position() const;
  // The rest is rank 0's.
  ExistingRun existing_run() const { return existing_run_; }
  const std::optional<ResumePoint>& resumed() const { return resumed_; }
  // Where the newest sound checkpoint of the run directory is; empty: none yet.
  std::filesystem::path newest_in_place() const;
  // What to tell the user. Requires: a resolved config.
  std::vector<std::string> notes(const RunIdentity& now) const;
  // Overwrites the model's weights where --resume or --pretrained asks for it; returns main.py's
  // lines about it. Errors: CheckpointError.
  std::vector<std::string> load(nn::Module& model, const RunConfig& config) const;
  // best.safetensors belongs to a run wherever it goes on. Errors: EnvironmentError.
  void carry_best_to(const std::filesystem::path& checkpoints) const;

 private:
  void find(RunConfig& config);
  void stay_in_place(RunConfig& config);

  std::optional<CheckpointRecord> record_;  // every rank's
  std::optional<ResumePoint> resumed_;
  ExistingRun existing_run_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::trainers
