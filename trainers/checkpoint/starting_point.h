// Finds where a run starts: with random weights, with those of a file, or where another process
// stopped.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "data/dataset.h"
#include "engine/state/weights_file.h"
#include "nn/module.h"
#include "trainers/checkpoint/resume.h"
#include "trainers/config/run_request.h"
#include "trainers/options/command_line.h"
#include "trainers/report/evaluation_record.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers {

// Rank 0 reads the files and shares what it found, so that other hosts need not see them.
class StartingPoint {
 public:
  // A collective call. Reads the checkpoint that --resume names, else --pretrained's file. With
  // "auto", a newer state that the job keeps in memory replaces the checkpoint. An error ends all
  // ranks here. is_first: whether this is the first rank of its host.
  StartingPoint(const RunRequest& asked,
                const Options& options,
                Communicator& ranks,
                bool is_first);

  // The constructor's options, with the flags that the file records and that were not given.
  const Options& options() const { return options_; }
  const RunRequest& request() const { return request_; }
  // The directory asked for, or that of the run that goes on; empty: a new one.
  const std::string& output_dir() const { return output_dir_; }

  struct Settled {
    RunRequest request;  // with what a checkpoint fixes of the run that goes on
    EvaluationRecord evaluation;
  };
  // A collective call. Compares the run with the record, once its data are open. An error ends all
  // ranks here.
  Settled settle(const data::DatasetPair& data,
                 const std::string& data_digest,
                 Communicator& ranks);

  // Known on every rank; nothing for a run that begins.
  std::optional<TrainingPosition> position() const;
  // Rank 0 alone may call the functions below.
  // The epoch in which a run goes on; 0 where it was killed before its first checkpoint and begins
  // again in its directory. Nothing for another run that begins.
  std::optional<int64_t> continued_epoch() const;
  ExistingRun existing_run() const { return existing_run_; }
  const std::optional<ResumePoint>& resumed() const { return resumed_; }
  // Errors: UsageError where the run directory holds later steps than the named checkpoint: a run
  // that continued there would remove them.
  void refuse_later_steps() const;
  // The newest sound checkpoint of the run directory; empty: none yet.
  std::filesystem::path newest_in_place() const;
  // Notes for the user.
  std::vector<std::string> notes(const RunIdentity& now,
                                 const ResolvedRun& run,
                                 const data::DatasetPair& data) const;
  // Overwrites the model's weights where --resume or --pretrained asks for it, once; returns
  // main.py's lines about it. Errors: CheckpointError.
  std::vector<std::string> load(nn::Module& model);
  // Keeps best.safetensors for a run that continues, wherever it does, unless the file is of a
  // later step. Where no run continues, renames the best weights that the folder holds and says so
  // in a note. Errors: EnvironmentError.
  std::vector<std::string> settle_best(const Folder& checkpoints) const;

 private:
  // A file of weights, as every rank knows it.
  struct Source {
    std::string file;
    Texts metadata;
    WeightsUse use = WeightsUse::kFineTune;
    std::vector<std::string> class_names{};  // of --class-names
    EvaluationRecord recorded{};

    OutputClasses outputs() const { return {file, recorded, class_names}; }
  };

  std::filesystem::path checkpoints_in_place() const;
  // kept: a state in memory, if any.
  void find(std::optional<SoundCheckpoint> kept);
  void find_checkpoint(std::optional<SoundCheckpoint> kept);
  bool take_kept(std::optional<SoundCheckpoint> kept);
  void stay_in_place();
  void find_best();
  void share_source(Communicator& ranks);
  void take_recorded_flags(Source& source);
  static void check_record(const Source& source, const EvaluationRecord& now);
  void note_built_in_images(const Source& source, const std::string& data_digest);

  const RunRequest requested_;  // the run without what the file records
  Options options_;
  RunRequest request_;
  std::string output_dir_;
  std::optional<Source> source_;
  std::optional<CheckpointRecord> record_;  // every rank's, of a run that goes on
  std::filesystem::path newest_on_disk_;
  std::optional<ResumePoint> resumed_;
  struct Best {
    std::filesystem::path file;  // to be copied from another directory; empty: none
    bool known = true;           // on every rank; false: the next evaluation is the best so far
  } best_;
  std::optional<WeightsFile> pretrained_;
  ExistingRun existing_run_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::trainers
