#include "trainers/page/viewed_run.h"

#include <algorithm>
#include <chrono>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>

#include "core/digest.h"
#include "core/input_file.h"
#include "core/unique_fd.h"
#include "core/words.h"
#include "trainers/config/run_files.h"
#include "trainers/report/run_directory.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// Whether a process holds the lock of a run directory, as RunDirectory does while it lives.
bool is_locked(const fs::path& directory) {
  const UniqueFd fd(
      open((directory / ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return fd.get() >= 0 && flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

RunState state_of(const RunRecord& record, const fs::path& directory) {
  if (record.exit_code == ExitCode::kDone) return RunState::kDone;
  if (record.exit_code == ExitCode::kStopped) return RunState::kStopped;
  if (record.exit_code) return RunState::kFailed;
  return is_locked(directory) ? RunState::kRunning : RunState::kBroken;
}

std::optional<Mistakes> mistakes_in(const fs::path& directory, const RunRecord& record) {
  const std::optional<std::string> text = contents_of(directory / kMistakesFile, kMostBytes);
  if (!text) return std::nullopt;
  std::optional<Mistakes> mistakes = mistakes_of(*text);
  const bool fits = mistakes && record.digest && mistakes->digest == to_hex(*record.digest);
  return fits ? mistakes : std::nullopt;
}

std::string folder_name(const fs::path& directory) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(directory, error);
  const fs::path& path = error ? directory : whole;
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

fs::path directory_of(const fs::path& path) {
  return path.filename() == kRunFile ? path.parent_path() : path;
}

RunRecord record_in(const fs::path& directory) {
  const fs::path file = directory / kRunFile;
  std::string json;
  try {
    json = InputFile(file).contents(kMostBytes);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(fmt::format("there is no run in {}", printable(directory.string())),
                           fmt::format("cannot read {}: {}", printable(file.string()), error.why()),
                           "a folder that a training wrote, such as runs/latest");
  }
  return run_record_of(json, file.string());
}

}  // namespace

std::string_view name_of(RunState state) {
  constexpr std::string_view kNames[] = {"done", "stopped", "failed", "running", "killed"};
  return kNames[static_cast<size_t>(state)];
}

ViewedRun view_record(const fs::path& path) {
  const fs::path directory = directory_of(path);
  ViewedRun run{.directory = directory, .name = folder_name(directory)};
  run.record = record_in(directory);
  run.state = state_of(run.record, directory);
  if (run.state == RunState::kBroken) {  // or it has ended since its record was read
    run.record = record_in(directory);
    run.state = state_of(run.record, directory);
  }
  std::error_code unreadable;
  run.has_numerics = fs::exists(directory / kNumericsFile, unreadable);
  return run;
}

bool run_is_starting(const fs::path& path) {
  const fs::path directory = directory_of(path);
  std::error_code unreadable;
  return !fs::exists(directory / kRunFile, unreadable) && is_locked(directory);
}

ViewedRun view_run(const fs::path& path) {
  ViewedRun run = view_record(path);
  run.curves = read_curves(run.directory / kMetricsFile);
  run.mistakes = mistakes_in(run.directory, run.record);
  return run;
}

void add_trace(ViewedRun& run) {
  std::error_code unreadable;
  if (!fs::exists(run.directory / kTraceFile, unreadable)) return;
  try {
    run.trace = read_trace(run.directory);
  } catch (const Error&) {
    run.trace.reset();  // lockstep trace says what is wrong with it
  }
}

std::vector<ViewedRun> view_runs(const std::vector<std::string>& paths) {
  std::vector<ViewedRun> runs;
  runs.reserve(paths.size());
  for (const std::string& path : paths) runs.push_back(view_run(path));
  return runs;
}

const std::string& flag_of(const RunRecord& record, std::string_view name) {
  static const std::string none;
  const auto found = std::ranges::find(record.flags, name, &ResolvedFlag::name);
  return found == record.flags.end() ? none : found->value;
}

const Evaluation* evaluation_of(const ViewedRun& run) {
  const std::optional<FinalMetrics>& final = run.record.final_metrics;
  return final && final->evaluation ? &*final->evaluation : nullptr;
}

double images_per_s_of(const ViewedRun& run) {
  const std::optional<FinalMetrics>& final = run.record.final_metrics;
  if (flag_of(run.record, "evaluate") == "true") return 0;
  if (final && final->images_per_s) return *final->images_per_s;
  const Curve& rate = run.curves.curve("train/img_s");
  return rate.empty() ? 0 : rate.mean();
}

int64_t skipped_steps_of(const ViewedRun& run) {
  const Curve& skipped = run.curves.curve("train/skipped_steps");
  const auto steps = static_cast<double>(run.curves.last_step());
  return skipped.empty() ? 0 : static_cast<int64_t>(std::min(std::max(skipped.last(), 0.0), steps));
}

double seconds_of(const ViewedRun& run) {
  const RunRecord& record = run.record;  // of the last process
  const Curve& clock = run.curves.curve("train/t");
  const double last_line = clock.empty() ? 0 : clock.last();
  const double ended = run.curves.ended_s();
  if (!record.final_metrics && !record.end) return ended + last_line;
  const bool took_steps = !record.resumed || run.curves.last_step() > record.resumed->step;
  const double process = record.final_metrics
                             ? record.final_metrics->wall_s
                             : std::chrono::duration<double>(*record.end - record.start).count();
  return ended + (took_steps ? 0 : last_line) + process;
}

}  // namespace lockstep::trainers
