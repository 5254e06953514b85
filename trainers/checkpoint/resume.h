// Finds the state from which a run continues, and keeps the settings that must stay as they were.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/config/run_request.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

struct ResumePoint {
  std::filesystem::path model_file;
  std::filesystem::path run_directory;  // the one that holds the file; empty: none
  Checkpoint checkpoint;
};

// Finds the checkpoint to resume from. With "auto" it is the newest sound checkpoint of
// `output_dir`, with a note for each damaged one that is newer; where there is none, nothing and a
// note. Otherwise `resume` is a checkpoint's model or state file, or a run directory, which stands
// for its newest checkpoint.
// Errors: CheckpointError for a checkpoint that does not exist or is damaged and, with "auto",
// where all are damaged.
std::optional<ResumePoint> find_resume_point(const std::string& resume,
                                             const std::filesystem::path& output_dir,
                                             std::vector<std::string>& notes);

// Returns the identity that a checkpoint records of this run.
RunIdentity identity_of(const ResolvedRun& run,
                        const Options& options,
                        const std::string& data_digest,
                        const EvaluationRecord& evaluation);

// Returns a note where the run goes on with another number of epochs, and other rates for that.
std::optional<std::string> note_on_epochs(const ResolvedRun& run,
                                          int64_t steps_per_epoch,
                                          const CheckpointRecord& before);

// Returns notes on what differs from the checkpoint's run; now: this run.
std::vector<std::string> notes_on_resume(const RunIdentity& now,
                                         const ResolvedRun& run,
                                         int64_t steps_per_epoch,
                                         const CheckpointRecord& before);

// Returns `request` with the batch, micro-steps, shards, groups, seeds and first epoch of `before`.
// Errors: CheckpointError for a flag that was given with another value, or other data; UsageError
// when there are more ranks than shards.
RunRequest request_of_resumed_run(RunRequest request,
                                  const Options& options,
                                  const std::string& data_digest,
                                  const RunIdentity& before,
                                  int64_t ranks);

}  // namespace lockstep::trainers
