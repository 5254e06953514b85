// Saves checkpoints in the background of training.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <string>

#include "core/folder.h"
#include "trainers/checkpoint/save_files.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// Rank 0 has one. A save copies the training's state and returns; a thread writes the files. There
// is one save at a time: the next one waits for it. A save that fails (disk full, read-only, quota)
// leaves the files of earlier ones as they are, prints a warning that names the newest sound
// checkpoint, and does not stop the training. Borrows the console. Thread safety: none; its thread
// uses neither the console nor the arguments of save(). The destructor waits for the save that is
// under way.
class CheckpointWriter {
 public:
  struct Options {
    // Returns the folder for the next file, which may change after a folder was removed. Errors:
    // EnvironmentError.
    std::function<const Folder&()> folder;
    int64_t keep = 3;                      // number of newest checkpoints to keep
    std::filesystem::path newest_sound{};  // of an earlier process in this folder
    // A wait for a save that takes this long is reported.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
  };

  // Removes what a killed process left in the folder.
  CheckpointWriter(Options options, RunIdentity run, Console& console);

  // Allocates the memory for all saves. Errors: EnvironmentError.
  void reserve(const SnapshotSource& source) { reserve_memory(source, snapshot_); }

  // Begins a save of the state as it is now. Errors: as finish().
  void save(const SavedFiles& files,
            const SnapshotSource& source,
            const TrainingPosition& position);
  // Continues the save and reports its outcome, without waiting. Call it between steps. Errors:
  // those of the save except EnvironmentError.
  void advance();
  // Returns when no save is under way. Errors: as advance().
  void finish();

  // Whether the last checkpoint was saved; false while it is under way. Nothing before the first.
  std::optional<bool> last_is_saved() const { return last_is_saved_; }

 private:
  Folder open_folder() const;
  void begin_writing();
  void end_writing();
  void warn_unsaved(const std::string& file, const Error& error) const;
  std::string newest_text() const;
  // Warns once about each thing that failed after a successful save.
  void warn_untidy(const std::string& what, const Error& error);

  const Options options_;
  const RunIdentity run_;
  Console& console_;
  std::filesystem::path newest_sound_;
  std::optional<bool> last_is_saved_;
  std::set<std::string> warned_;  // by warn_untidy()
  // The save under way: first its snapshot is copied, then its files are written.
  SavedFiles files_;
  RecordedSnapshot snapshot_;
  std::optional<Folder> folder_;
  bool is_copying_ = false;
  bool is_second_try_ = false;
  std::future<SaveReport> writing_;  // the last member, so that its destructor waits first
};

}  // namespace lockstep::trainers
