// The folder that a run leaves: run.json, metrics.jsonl, TensorBoard's events,
// checkpoints/, in trouble numerics.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/function_ref.h"
#include "trainers/report/console.h"
#include "trainers/report/epoch_csv.h"
#include "trainers/report/run_events.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {

// Keeps other runs out of a folder: holds an exclusive lock on a file, created if missing, until
// destroyed or until the process ends in whatever way. The file then names the holder and stays
// behind, unlocked.
class FileLock {
 public:
  // Errors: UsageError naming the holder's process, host and start when another run holds it;
  // EnvironmentError when the file cannot be opened.
  explicit FileLock(const std::filesystem::path& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int fd_ = -1;
};

enum class ExistingRun { kRefuse, kOverwrite, kContinue };

// Locked for this process while the object lives. One rank of a job makes it.
class RunDirectory {
 public:
  // Creates `path` and its missing parents and proves that files can be written there. A folder
  // `runs/x` also becomes the target of the link `runs/latest`. kOverwrite removes an earlier run's
  // run.json, metrics.jsonl, events, mistakes.json, numerics.json, plans.json, trace.json and
  // checkpoints, no other file; kContinue keeps them.
  // Errors: UsageError when the folder is not empty and `existing` is kRefuse, when it is kContinue
  // and the folder holds files but no run, or when another run holds it; EnvironmentError when it
  // cannot be created or written.
  RunDirectory(const std::filesystem::path& path, ExistingRun existing);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }  // exists

  // Replaces run.json as a whole. Errors: EnvironmentError.
  void write(const RunRecord& record) const;
  // Appends a line of to_json_line() to metrics.jsonl; it is the system's when this returns.
  // Errors: EnvironmentError; then the file is as before.
  void append(std::string_view line) const;
  // Drops the lines of metrics.jsonl about later steps than this one, and an unfinished last line:
  // a continuation writes them again; numerics.json too where it is about such a step. Errors:
  // EnvironmentError.
  void cut_metrics(int64_t step);

 private:
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }

  std::filesystem::path path_;
  FileLock lock_;
  AppendedFile metrics_file_;
};

// Returns `path`, or the first of `path`-2, -3, ... that does not exist: two runs that name no
// directory may begin in one second.
std::filesystem::path unused_path(const std::filesystem::path& path);

// The file in a run directory that reports a loss that was not finite, or steps that were skipped
// (trainers/debug/numerics_report.h).
inline constexpr const char* kNumericsFile = "numerics.json";
// The file with the engines of cuDNN that were not chosen by rule (trainers/planner/plan_file.h).
inline constexpr const char* kPlansFile = "plans.json";
// The file with the timeline of --trace (trainers/timeline/trace_file.h).
inline constexpr const char* kTraceFile = "trace.json";

// Writes a run's files while it goes on. A disk that is full costs lines, not the training: there
// is one warning then. Silent without a directory, as on ranks other than 0.
class RunLog {
 public:
  // Directory and console must outlive this. Without `events` there is nothing for TensorBoard.
  RunLog(const RunDirectory* directory, Console& console, std::optional<RunEvents> events = {})
      : directory_(directory), console_(&console), events_(std::move(events)) {}

  // To metrics.jsonl, and to the console where progress is JSON.
  void append(std::initializer_list<Metric> metrics);
  // Appends a line of training, or of an evaluation, after `step` steps. `digest`: of the model, or
  // "".
  void append_step(int epoch, int64_t step, const StepMetrics& metrics);
  void append_evaluation(std::string_view split,
                         int epoch,
                         int64_t step,
                         const Evaluation& evaluation,
                         std::string_view digest);
  void append_epoch(const EpochCsv& csv, const EpochRow& row);
  // For TensorBoard, where the run has events.
  void begin_events(FunctionRef<EventOpening()> opening);
  void append_histograms(int64_t step, std::span<const NamedValues> tensors);
  void end_events(int64_t step);
  void write_numerics(const std::string& text);

 private:
  void attempt(FunctionRef<void()> write);

  const RunDirectory* directory_;
  Console* console_;
  std::optional<RunEvents> events_;
  StepMetrics train_;  // of the last step that was appended
  bool lost_ = false;
};

}  // namespace lockstep::trainers
