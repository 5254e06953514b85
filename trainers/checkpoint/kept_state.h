// The training's state in memory that outlives the ranks: a restart of the job goes on from it, and
// no step is lost. A checkpoint's two files in /dev/shm, complete before they take their place: a
// rank that is killed while it writes leaves the one before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/communicator.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/checkpoint/snapshot.h"

namespace lockstep::trainers {

// Where this job keeps it on this host: a folder of its own for each user and job. Errors:
// UsageError where no launcher has named the job (LOCKSTEP_JOB): none would start it again.
std::filesystem::path kept_state_folder();

// The first rank of each host has one. Thread safety: none.
class StateKeeper {
 public:
  // `warn` hears of what fails later. Errors: EnvironmentError for a folder that is not this
  // user's own, or cannot be made.
  StateKeeper(std::filesystem::path folder,
              RunIdentity run,
              std::function<void(const std::string&)> warn);

  // Takes the memory of a snapshot. Errors: EnvironmentError where there is no room for it, or for
  // two states in the folder.
  void reserve(const SnapshotSource& source);
  // Keeps the state as it is now, in place of the one before. Where that fails, it is said, and
  // this host keeps none from now on.
  void keep(const SnapshotSource& source, const TrainingPosition& at);
  // The run's end: nothing stays.
  void remove() const;

 private:
  const std::filesystem::path folder_;
  const RunIdentity run_;
  const std::function<void(const std::string&)> warn_;
  Snapshot snapshot_;
  bool gave_up_ = false;
};

// A collective call: the newest state that a host keeps, on rank 0, in its folder; nothing
// elsewhere, and where no host has any. `folder`: of the first rank of each host, empty elsewhere.
// Errors: those of `ranks`; EnvironmentError.
std::optional<SoundCheckpoint> newest_kept(Communicator& ranks,
                                           const std::filesystem::path& folder);

}  // namespace lockstep::trainers
