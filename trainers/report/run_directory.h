// The folder that a run leaves: run.json, metrics.jsonl, TensorBoard's events,
// checkpoints/, in trouble numerics.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/atomic_file.h"
#include "core/folder.h"
#include "core/function_ref.h"
#include "core/unique_fd.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {

// Keeps other runs out of a folder. Holds an exclusive lock on its file .lock, which is created if
// missing, until destroyed or until the process ends, however it ends. The file names the holder,
// and stays behind unlocked.
class FolderLock {
 public:
  // Errors: UsageError naming the holder's process, host and start when another run holds it;
  // EnvironmentError when the file cannot be opened.
  explicit FolderLock(const Folder& folder);

  // Whether the file was removed, so that another run could lock a new one.
  bool is_broken() const;

 private:
  UniqueFd file_;
};

enum class ExistingRun { kRefuse, kOverwrite, kContinue };

// A run's directory, locked for this process while the object lives. One rank of a job makes it. A
// run writes everything through descriptors of its folders: it follows a folder that was moved, and
// never writes to another that has taken its path. If the folder is removed while the run goes on,
// the next write makes a new one, at an unused path, with what is still known. `tell` is called
// about each such event.
class RunDirectory {
 public:
  using Tell = std::function<void(const std::string& warning)>;

  // Creates `path` and its missing parents and proves that files can be written there. An earlier
  // run's files stay; kOverwrite requires remove_earlier_run() before anything is written.
  // Errors: UsageError when the folder is not empty and `existing` is kRefuse, when it is kContinue
  // and the folder holds files but no run, or when another run holds it; EnvironmentError when it
  // cannot be created or written.
  RunDirectory(const std::filesystem::path& path, ExistingRun existing, Tell tell = {});

  // Removes an earlier run's run.json, metrics.jsonl, events, mistakes.json, numerics.json,
  // plans.json, trace.json, report.html and checkpoints, no other file. Requires: nothing may
  // refuse the run any more. Errors: EnvironmentError.
  void remove_earlier_run();
  // Makes a folder `runs/x` the target of the link `runs/latest`, where possible.
  void become_latest() const;
  // The directory's path at the last write.
  const std::filesystem::path& path() const { return path_; }

  // The folder for the next file; valid until the next call.
  const Folder& folder();
  const Folder& checkpoints();

  // Replaces run.json as a whole.
  void write(const RunRecord& record);
  // Appends a line of to_json_line() to metrics.jsonl; on return, the operating system has it.
  // After an error the file is as before.
  void append(std::string_view line);
  // Drops the lines of metrics.jsonl about steps after this one, and an unfinished last line,
  // because a continuation writes them again. Drops numerics.json where it is about such a step,
  // and evaluations after this very step where the continuation begins with one.
  void cut_metrics(int64_t step, bool begins_with_evaluation = false);

 private:
  struct Place {
    Place(const std::filesystem::path& path, ExistingRun existing);

    Folder folder;
    FolderLock lock;
    Folder checkpoints;
    AppendedFile metrics;
  };

  void begin_elsewhere(const std::string& why);
  // Makes a new metrics.jsonl from the lines of `from` for which `keeps` is true.
  void keep_metrics(const AppendedFile& from, FunctionRef<bool(const std::string& line)> keeps);
  void say(const std::string& what) const;

  std::filesystem::path path_;
  Place place_;
  std::string record_;  // run.json
  Tell tell_;
};

// Creates the folder `path`, or the first of `path`-2, -3, ... that is not there, and returns it.
// Runs that name no directory may begin in one second: each gets its own. Errors: EnvironmentError.
std::filesystem::path create_unused(const std::filesystem::path& path);

}  // namespace lockstep::trainers
