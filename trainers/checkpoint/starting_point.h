// Where a run begins: with random weights, with those of a file, or where another process left off.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/safetensors.h"
#include "data/dataset.h"
#include "nn/module.h"
#include "trainers/checkpoint/recorded_flags.h"
#include "trainers/checkpoint/resume.h"
#include "trainers/config/run_config.h"
#include "trainers/options/command_line.h"
#include "trainers/output/run_directory.h"

namespace lockstep::trainers {

// Rank 0 reads files and hands out what it found, so that other hosts need not see them.
class StartingPoint {
 public:
  // A collective call. Reads the checkpoint that --resume means, else --pretrained's file; gives
  // `options` and `config` the flags that it records and that were not given; sets the run
  // directory when the run goes on in one. An error ends all ranks here.
  StartingPoint(RunConfig& config, Options& options, Communicator& ranks);

  // A collective call. Compares the run with the record, now that its data are open, and gives
  // `config`, which is not resolved yet, what a checkpoint fixes. Returns what to record of this
  // run. An error ends all ranks here.
  EvaluationRecord settle(RunConfig& config,
                          const Options& options,
                          const data::DatasetPair& data,
                          const std::string& data_digest,
                          Communicator& ranks);

  // On every rank; nothing for a run that begins.
  std::optional<TrainingPosition> position() const;
  // The rest is rank 0's.
  ExistingRun existing_run() const { return existing_run_; }
  const std::optional<ResumePoint>& resumed() const { return resumed_; }
  // Where the newest sound checkpoint of the run directory is; empty: none yet.
  std::filesystem::path newest_in_place() const;
  // Notes for the user. Requires: a resolved config.
  std::vector<std::string> notes(const RunIdentity& now) const;
  // Overwrites the model's weights where --resume or --pretrained asks for it, once; returns
  // main.py's lines about it. Errors: CheckpointError.
  std::vector<std::string> load(nn::Module& model, const RunConfig& config);
  // best.safetensors belongs to a run wherever it goes on. Errors: EnvironmentError.
  void carry_best_to(const std::filesystem::path& checkpoints) const;

 private:
  void find(RunConfig& config);
  void find_checkpoint(RunConfig& config);
  void stay_in_place(RunConfig& config);
  void share_source(const RunConfig& config, Communicator& ranks);
  // A file of weights, as every rank knows it.
  struct Source {
    std::string file;
    Texts metadata;
    WeightsUse use = WeightsUse::kFineTune;
    EvaluationRecord recorded{};
  };
  static void check_record(const Source& source, const EvaluationRecord& now);

  RunConfig asked_;  // the run without what the file records
  std::optional<Source> source_;
  std::optional<CheckpointRecord> record_;  // every rank's, of a run that goes on
  std::optional<ResumePoint> resumed_;
  std::optional<Safetensors> pretrained_;
  ExistingRun existing_run_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::trainers
