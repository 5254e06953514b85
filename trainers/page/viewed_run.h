// A run as its files show it, for reports, lists and comparisons.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/page/run_curves.h"
#include "trainers/report/mistakes.h"
#include "trainers/report/run_record.h"
#include "trainers/timeline/read_trace.h"

namespace lockstep::trainers {

enum class RunState : uint8_t {
  kDone,     // ended with exit code 0
  kStopped,  // on a signal, and saved
  kFailed,   // ended with another exit code
  kRunning,  // its process holds the run directory
  kBroken,   // its process is gone and wrote no end
};
std::string_view name_of(RunState state);  // "done"

struct ViewedRun {
  std::filesystem::path directory{};
  std::string name{};  // the folder's, as it is: escape it before it is shown
  RunState state = RunState::kDone;
  RunRecord record{};
  RunCurves curves{};
  std::optional<Mistakes> mistakes{};  // of the weights that the record is about
  bool has_numerics = false;           // numerics.json is there
  std::optional<TraceContents> trace{};
};

// `path`: a run directory or its run.json.
// Errors: EnvironmentError when there is no run.json; DataError when it cannot be read.
ViewedRun view_run(const std::filesystem::path& path);
// Reads all but the curves and the mistakes. Errors: those of view_run().
ViewedRun view_record(const std::filesystem::path& path);
// Whether a process holds a run directory that has no run.json yet.
bool run_is_starting(const std::filesystem::path& path);

// Reads trace.json, whose size --trace determines. A file that is no trace counts as missing.
void add_trace(ViewedRun& run);

std::vector<ViewedRun> view_runs(const std::vector<std::string>& paths);

// A flag's value, "" where the run has none.
const std::string& flag_of(const RunRecord& record, std::string_view name);
// The final evaluation; null where there is none.
const Evaluation* evaluation_of(const ViewedRun& run);
// Images/s of the whole run from its record, or the mean of its lines; 0: not known.
double images_per_s_of(const ViewedRun& run);
// Steps that changed no weight, for their gradients were not finite.
int64_t skipped_steps_of(const ViewedRun& run);
// Seconds of the run's processes from their starts to their ends, or to their last lines of
// metrics.jsonl where an end is not recorded.
double seconds_of(const ViewedRun& run);

}  // namespace lockstep::trainers
