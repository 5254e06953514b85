// The parts of a report, each as HTML; "" where the runs' files have no data for it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainers/page/viewed_run.h"

namespace lockstep::trainers {

using ViewedRuns = std::span<const ViewedRun>;

// Loss, accuracy, learning rate, throughput, ... over steps; several runs share the axes.
std::string curve_charts(ViewedRuns runs);
// Shows where time and memory went: figures of ranks, step times, the slowest rank, one step,
// buckets.
std::string time_charts(const ViewedRun& run);
// Shows one step: that of a trace where the run has one, else the means in run.json.
std::string step_chart(const ViewedRun& run);
inline constexpr size_t kMaxRows = 64;  // of ranks or buckets that a chart shows
std::string bucket_table(const ViewedRun& run);
// The confusion matrix, and the images that were most wrong.
std::string mistake_parts(const ViewedRun& run);
// Final figures side by side.
std::string figures_table(ViewedRuns runs);
// Flags, ranks and versions of one run; the flags that differ between several.
std::string configuration(const ViewedRun& run);
std::string different_flags(ViewedRuns runs);
// Everything that fixes a run's bits, its digest, and where it may go on.
std::string bits_of(const ViewedRun& run);

// A flag whose values differ between runs; "" where a run has none.
struct FlagDifference {
  std::string name;
  std::vector<std::string> values{};  // by run
};
// Returns the flags that differ, except those that say where a run's files are and which rank a
// process is.
std::vector<FlagDifference> flag_differences(ViewedRuns runs);

}  // namespace lockstep::trainers
