// The state that a run goes on from, and the part of it that must stay as it was.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/config/resolved_run.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

struct ResumePoint {
  std::filesystem::path model_file;
  std::filesystem::path run_directory;  // that the file lies in; empty: in none
  Checkpoint checkpoint;
};

// "auto": the newest sound checkpoint of `output_dir`, with a note for each damaged one that is
// newer; nothing, and a note, where there is none. Else a checkpoint's model or state file, or a
// run directory, whose newest one is meant.
// Errors: CheckpointError: no such checkpoint, a damaged one, or with "auto" none but damaged ones.
std::optional<ResumePoint> find_resume_point(const std::string& resume,
                                             const std::filesystem::path& output_dir,
                                             std::vector<std::string>& notes);

// Returns the identity that a checkpoint records of this run.
RunIdentity identity_of(const ResolvedRun& run,
                        const Options& options,
                        const std::string& data_digest,
                        const EvaluationRecord& evaluation);

// `request` with the batch, micro-steps, shards, groups, seeds and first epoch of `before`. Errors:
// CheckpointError for a flag that was given with another value, or other data; UsageError when
// there are more ranks than shards.
RunRequest keep_run(RunRequest request,
                    const Options& options,
                    const std::string& data_digest,
                    const RunIdentity& before,
                    int64_t ranks);

}  // namespace lockstep::trainers
