// Reads metrics.jsonl as curves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/line_splitter.h"
#include "core/unique_fd.h"
#include "trainers/page/curve.h"

namespace lockstep::trainers {

// The slowest rank of the steps from the previous entry up to `last`.
struct SlowestRankSpan {
  int64_t last = 0;
  int64_t rank = 0;
  double skew = 0;  // SlowestRank's, the largest of the span
};

// Grows by lines of metrics.jsonl; its memory does not grow with their number.
class RunCurves {
 public:
  // Adds one line. A line that is incomplete or holds no figures is counted and left out.
  void add_line(std::string_view line);

  // "train/loss", "val/acc1", "train/comm_exposed_s", ... over steps. Empty where there is none.
  const Curve& curve(const std::string& name) const;
  const std::vector<SlowestRankSpan>& slowest() const { return slowest_; }
  // Counts, by rank, the lines in which it was slower than the others' mean by a tenth or more.
  const std::map<int64_t, int64_t>& times_slow() const { return times_slow_; }
  // Names the loader's work in most of the lines where steps waited for it for a tenth of the time.
  std::string loader_busy_with() const;
  int64_t train_lines() const { return train_lines_; }
  int64_t broken_lines() const { return broken_lines_; }
  int64_t last_step() const { return last_step_; }
  int64_t last_epoch() const { return last_epoch_; }  // from 0
  // Seconds of processes that took steps before the last one that did, up to their last lines.
  double ended_s() const { return ended_s_; }

 private:
  void add_slowest(const SlowestRankSpan& span);

  std::map<std::string, Curve> curves_;
  std::vector<SlowestRankSpan> slowest_;
  int64_t slowest_stride_ = 1, slowest_pending_ = 0;  // lines a span; lines in the last one
  std::map<int64_t, int64_t> times_slow_;
  std::map<std::string, int64_t> loader_busy_;
  int64_t train_lines_ = 0;
  int64_t broken_lines_ = 0;
  int64_t last_step_ = 0;
  int64_t last_epoch_ = 0;
  double ended_s_ = 0;
};

// The skew from which a rank counts as slow.
inline constexpr double kSlowSkew = 0.1;
// The share of time waited for the loader from which a line counts.
inline constexpr double kLoaderWaits = 0.1;

// Opens a regular file; invalid where there is none.
UniqueFd open_metrics(const std::filesystem::path& metrics_file);

// Adds the lines from `offset` on, and returns the offset of what was not read. A line that is too
// long ends the file.
uint64_t add_lines(const UniqueFd& metrics,
                   uint64_t offset,
                   LineSplitter& lines,
                   RunCurves& curves);

// Reads a file line by line; a file that is not there gives no curves.
RunCurves read_curves(const std::filesystem::path& metrics_file);

}  // namespace lockstep::trainers
