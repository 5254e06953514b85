#include "trainers/report/run_log.h"

#include <utility>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "trainers/config/run_files.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {

void RunLog::append(std::initializer_list<Metric> metrics) {
  if (directory_ == nullptr) return;
  const std::string line = to_json_line(metrics);
  console_->progress_json(line);
  attempt([&] { directory_->append(line); });
}

void RunLog::append_step(int epoch, int64_t step, const StepMetrics& metrics) {
  append({{"split", "train"},
          {"epoch", int64_t{epoch}},
          {"step", step},
          {"t", seconds_since_process_start()},
          {"loss", metrics.loss},
          {"loss_avg", metrics.loss_avg},
          {"acc1", metrics.acc1},
          {"acc5", metrics.acc5},
          {"lr", metrics.lr},
          {"img_s", metrics.images_per_s},
          {"step_s", metrics.step_s_avg},
          {"data_s", metrics.data_s_avg},
          {"comm_exposed_s", metrics.comm_exposed_s},
          {"comm_hidden_s", metrics.comm_hidden_s},
          {"slowest_rank", int64_t{metrics.slowest_rank}},
          {"skew", metrics.skew},
          {"loader_waited", metrics.loader_waited},
          {"loader_busy_with", metrics.loader_busy_with},
          {"loss_scale", metrics.loss_scale},
          {"skipped_steps", metrics.skipped_steps}});
  if (events_) attempt([&] { events_->after_step(step, metrics); });
}

void RunLog::append_evaluation(std::string_view split,
                               int epoch,
                               int64_t step,
                               const Evaluation& evaluation,
                               std::string_view digest) {
  append({{"split", split},
          {"epoch", int64_t{epoch}},
          {"step", step},
          {"t", seconds_since_process_start()},
          {"loss", evaluation.loss},
          {"acc1", evaluation.acc1()},
          {"acc5", evaluation.acc5()},
          {"correct", evaluation.correct1},
          {"total", evaluation.total},
          {"digest", digest}});
}

void RunLog::append_epoch_events(int epoch,
                                 int64_t step,
                                 const StepMetrics& train,
                                 const Evaluation& evaluation) {
  if (events_) attempt([&] { events_->after_epoch(epoch, step, train, evaluation); });
}

void RunLog::append_epoch(const EpochCsv& csv, const EpochRow& row) {
  attempt([&] { csv.append(row); });
}

void RunLog::begin_events(FunctionRef<EventOpening()> opening) {
  if (events_) attempt([&] { events_->begin(opening); });
}

void RunLog::append_histograms(int64_t step, std::span<const NamedValues> tensors) {
  if (events_) attempt([&] { events_->histograms(step, tensors); });
}

void RunLog::end_events(int64_t step) {
  if (events_) attempt([&] { events_->end(step); });
}

void RunLog::write_numerics(const std::string& text) {
  attempt([&] { write_file_atomically(directory_->folder(), kNumericsFile, text); });
}

void RunLog::attempt(FunctionRef<void()> write) {
  if (directory_ == nullptr) return;
  try {
    write();
  } catch (const EnvironmentError& error) {
    if (std::exchange(lost_, true)) return;
    console_->warn(
        fmt::format("lockstep: warning: {}\n  why: {}\n  try: {}; training goes on, lines are lost",
                    error.what(),
                    error.why(),
                    advice_of(error)));
  }
}

}  // namespace lockstep::trainers
