// Keeps the training's state in memory that outlives the ranks, so that a restart of the job
// continues from it and loses no step. The state is a checkpoint's two files in /dev/shm. They are
// complete before they take their place, so a rank that is killed while it writes leaves the
// previous state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/communicator.h"
#include "core/unique_fd.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/checkpoint/save_files.h"

namespace lockstep::trainers {

// Where this job keeps its state on this host: a folder of its own for each user and job. Errors:
// UsageError where no launcher has named the job (LOCKSTEP_JOB), because none would restart it.
std::filesystem::path kept_state_folder();

// The first rank of each host has one. Thread safety: none.
class StateKeeper {
 public:
  // `warn` is called about later failures. Errors: EnvironmentError for a folder that is not this
  // user's own, or cannot be made.
  StateKeeper(std::filesystem::path folder,
              RunIdentity run,
              std::function<void(const std::string&)> warn);

  // Allocates the memory of a snapshot. Errors: EnvironmentError where there is no room for it, or
  // for two states in the folder.
  void reserve(const SnapshotSource& source);
  // Keeps the current state in place of the previous one. Where that fails, it warns, and this host
  // keeps no state from then on.
  void keep(const SnapshotSource& source, const TrainingPosition& position);
  // Removes the state, at the end of the run.
  void remove() const;

 private:
  const std::filesystem::path folder_;
  const RunIdentity run_;
  const std::function<void(const std::string&)> warn_;
  UniqueFd lock_;  // on the folder: it is in use
  RecordedSnapshot snapshot_;
  bool gave_up_ = false;
};

// A collective call. Returns the newest state that any host keeps, on rank 0 and in rank 0's
// folder; nothing on other ranks, and where no host has one. `folder` is that of the first rank of
// each host, and empty on other ranks. Errors: those of `ranks`; EnvironmentError.
std::optional<SoundCheckpoint> newest_kept(Communicator& ranks,
                                           const std::filesystem::path& folder);

}  // namespace lockstep::trainers
