#include "trainers/report/run_log.h"

#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
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

namespace {

constexpr size_t kEpochColumn = 2;

// Returns the header and the whole rows of the epochs before `end`. The last row may be cut off
// where a run was killed, and a run that was stopped in an epoch left a row for its part of it.
std::string rows_before(const std::string& text, int64_t end) {
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  std::string kept = csv_header();
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::vector<std::string_view> cells = split_words(line, ',');
    const auto epoch = cells.size() > kEpochColumn ? parse_int(cells[kEpochColumn]) : std::nullopt;
    if (epoch && *epoch < end) kept += line + "\n";
  }
  return kept;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw UsageError(fmt::format("--csv {} is another file", path.string()),
                   why,
                   "another name after --csv, or --overwrite to replace the file");
}

}  // namespace

std::string csv_header() {
  return "start_time,epoch_seconds,epoch,step,lr,train_loss,train_acc1,train_acc5,"
         "val_loss,val_acc1,val_acc5\n";
}

std::string csv_line(const EpochRow& row) {
  const std::string evaluated = row.evaluation ? fmt::format("{:.9g},{:.9g},{:.9g}",
                                                             row.evaluation->loss,
                                                             row.evaluation->acc1(),
                                                             row.evaluation->acc5())
                                               : ",,";
  return fmt::format("{},{:.3f},{},{},{:.9g},{:.9g},{:.9g},{:.9g},{}\n",
                     utc_text(row.start),
                     row.seconds,
                     row.epoch,
                     row.step,
                     row.lr,
                     row.train_loss,
                     row.train_acc1,
                     row.train_acc5,
                     evaluated);
}

EpochCsv::EpochCsv(const std::filesystem::path& path,
                   std::optional<int64_t> resumed,
                   bool overwrite) {
  const std::optional<std::string> held = overwrite ? "" : contents_of(path, kMostBytes);
  std::error_code unknown;
  if (!held && std::filesystem::exists(path, unknown)) refuse(path, "it cannot be read");
  const std::string before = held.value_or("");
  if (!before.empty() && !before.starts_with(csv_header())) {
    refuse(path, "it does not begin with the columns of this table");
  }
  if (!before.empty() && !resumed) refuse(path, "it holds the epochs of another run");
  write_file_atomically(path, resumed ? rows_before(before, *resumed) : csv_header());
  file_ = AppendedFile(path);
}

void EpochCsv::append(const EpochRow& row) const {
  file_.append(csv_line(row));
}

}  // namespace lockstep::trainers
