// The files and folders in a run's directory.
#pragma once

#include <cstdint>

namespace lockstep::trainers {

inline constexpr const char* kRunFile = "run.json";            // trainers/report/run_record.h
inline constexpr const char* kMetricsFile = "metrics.jsonl";   // its lines, one per step
inline constexpr const char* kMistakesFile = "mistakes.json";  // trainers/report/mistakes.h
inline constexpr const char* kNumericsFile = "numerics.json";  // trainers/debug/numerics_report.h
inline constexpr const char* kPlansFile = "plans.json";        // trainers/planner/plan_file.h
inline constexpr const char* kTraceFile = "trace.json";        // trainers/timeline/trace_file.h
inline constexpr const char* kReportFile = "report.html";      // trainers/page/report_page.h
inline constexpr const char* kCheckpointsFolder = "checkpoints";  // and in it:
inline constexpr const char* kLastFile = "last.safetensors";      // a link to the newest
inline constexpr const char* kBestFile = "best.safetensors";
inline constexpr const char* kAverageFile = "ema.safetensors";

// The most bytes that are read of a file that is held in memory: far more than a run writes.
inline constexpr uint64_t kMostBytes = uint64_t{64} << 20;

}  // namespace lockstep::trainers
