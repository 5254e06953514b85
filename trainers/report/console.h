// Rank 0's output to the user. Progress is shown as pytorch/examples' log lines or as a bar.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "engine/results/metrics.h"
#include "engine/results/training_result.h"

namespace lockstep::trainers {

enum class ProgressMode { kLine, kBar, kJson, kNone };

// --progress auto is LOCKSTEP_PROGRESS as the launcher set it; else lines under a launcher, where
// isatty() of a rank is not reliable; else a bar when both streams are terminals. A log of either
// has lines.
ProgressMode choose_progress(const std::string& flag, bool launched);

// `step` counts finished steps of `steps` in this epoch. Existing parsers of main.py's lines can
// read the line; Lockstep's own columns come last. With several ranks these are "Comm
// EXPOSED+HIDDEN ms" and the slowest rank; with a loss scale, "Scale X (N skipped)"; and where
// steps waited for images, "loader waited 12% (disk)" with what the loader was busy with.
std::string progress_line(int epoch, int64_t step, int64_t steps, const StepMetrics& metrics);
// `batch` counts from 0, as main.py does here.
std::string test_line(int64_t batch, int64_t batches, const TestMetrics& metrics);
std::string progress_bar(
    int epoch, int epochs, int64_t step, int64_t steps, const StepMetrics& metrics);
// main.py's line for an evaluation, or Apex's, in percent, and a similar one for the weights'
// moving average.
std::string accuracy_line(const Evaluation& evaluation, bool apex_lines);
std::string average_line(const Evaluation& evaluation);
// Tutorial 001's line. `step` counts finished steps of `steps` in this epoch. Speeds are images per
// second over all ranks: of the last print interval, and of the epoch so far.
std::string apex_progress_line(int epoch, int64_t step, int64_t steps, const StepMetrics& metrics);
// `batch` counts from 0; speeds are one rank's.
std::string apex_test_line(int64_t batch, int64_t batches, const TestMetrics& metrics);
// "1:02:03"
std::string clock_text(double seconds);

// The scripts whose lines presets print: demo-baseline and demo-ddp, ddp-tricks.
enum class TutorialLines : uint8_t { kNone, kDemo, kTricks };

// Prints on rank 0 and is silent on other ranks. Standard output holds only the summary where one
// is wanted; else only progress where that is JSON; else only TutorialLines where there are some.
// Everything else goes to standard error. Thread safety: none.
class Console {
 public:
  struct Options {
    bool prints = true;  // rank 0
    bool quiet = false;  // results and warnings only
    TutorialLines tutorial = TutorialLines::kNone;
    ProgressMode progress = ProgressMode::kLine;
    bool json = false;                                       // a summary
    std::function<void(const std::string& line)> sink = {};  // empty: the standard streams
  };

  explicit Console(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }
  void info(const std::string& line);                          // start lines; not when quiet
  void result(const std::string& line);                        // always
  void tutorial(TutorialLines kind, const std::string& line);  // of that kind only, on stdout
  void warn(const std::string& line);                          // always, on standard error
  void progress_line(const std::string& line);
  void progress_bar(const std::string& line);   // replaces the last bar
  void progress_json(const std::string& line);  // ends in a newline, as the one below
  void summary(const std::string& line);        // where it is wanted

 private:
  void end_bar();
  void write(std::FILE* to, const std::string& line) const;
  bool progress_is_json() const { return options_.progress == ProgressMode::kJson; }
  std::FILE* out() const;

  Options options_;
  bool bar_open_ = false;
};

}  // namespace lockstep::trainers
