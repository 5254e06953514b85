// Writes a run's progress to its files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/function_ref.h"
#include "trainers/report/console.h"
#include "trainers/report/epoch_csv.h"
#include "trainers/report/run_directory.h"
#include "trainers/report/run_events.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {

// Writes a run's files while it goes on. A full disk costs lines but not the training; it causes
// one warning. Does nothing without a directory, as on ranks other than 0.
class RunLog {
 public:
  // Directory and console must outlive this. Without `events`, nothing is written for TensorBoard.
  RunLog(RunDirectory* directory, Console& console, std::optional<RunEvents> events = {})
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
  // Appends to TensorBoard's events, where the run has them. `train`: the epoch's averages.
  void append_epoch_events(int epoch,
                           int64_t step,
                           const StepMetrics& train,
                           const Evaluation& evaluation);
  void begin_events(FunctionRef<EventOpening()> opening);
  void append_histograms(int64_t step, std::span<const NamedValues> tensors);
  void end_events(int64_t step);
  void write_numerics(const std::string& text);

 private:
  void attempt(FunctionRef<void()> write);

  RunDirectory* directory_;
  Console* console_;
  std::optional<RunEvents> events_;
  bool lost_ = false;
};

}  // namespace lockstep::trainers
