// Writes a run's progress to its files.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/atomic_file.h"
#include "core/function_ref.h"
#include "engine/results/training_result.h"
#include "trainers/report/console.h"
#include "trainers/report/run_directory.h"
#include "trainers/report/run_events.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {

// A row of --csv, a table for spreadsheets.
struct EpochRow {
  std::chrono::system_clock::time_point start;            // of this process's part of the epoch
  double seconds = 0;                                     // of that part, its evaluation included
  int epoch = 0;                                          // from 0
  int64_t step = 0;                                       // steps since epoch 0
  double lr = 0;                                          // of the last step
  double train_loss = 0, train_acc1 = 0, train_acc5 = 0;  // the epoch's means; percent
  std::optional<Evaluation> evaluation = {};              // nothing where there was none
};

std::string csv_header();  // one line
std::string csv_line(const EpochRow& row);

// Rank 0 has one.
class EpochCsv {
 public:
  // A new run starts the file with the header. A run that goes on in epoch `resumed` keeps the rows
  // of the epochs before it. `overwrite`: an earlier run's file is replaced.
  // Errors: UsageError for a file that is not this run's; EnvironmentError for one that cannot be
  // written.
  EpochCsv(const std::filesystem::path& path, std::optional<int64_t> resumed, bool overwrite);

  // Errors: EnvironmentError.
  void append(const EpochRow& row) const;

 private:
  AppendedFile file_;
};

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
