#include "inspect/runs/run_list.h"

#include <algorithm>
#include <cmath>
#include <system_error>

#include <fmt/core.h>

#include "core/digest.h"
#include "core/words.h"
#include "inspect/runs/text_table.h"
#include "trainers/config/run_files.h"
#include "trainers/page/report_parts.h"
#include "trainers/page/verdict.h"
#include "trainers/report/number_text.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// Folders of runs, without links such as runs/latest.
std::vector<fs::path> run_folders(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  if (error) {
    throw EnvironmentError(fmt::format("cannot list the runs in {}", printable(folder.string())),
                           error.message(),
                           "the folder that holds run directories");
  }
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : entries) {
    if (entry.is_symlink(error) || !entry.is_directory(error)) continue;
    if (fs::exists(entry.path() / kRunFile, error)) folders.push_back(entry.path());
  }
  if (!folders.empty()) return folders;
  throw EnvironmentError(fmt::format("there is no run in {}", printable(folder.string())),
                         "no folder in it has a run.json",
                         "the folder that holds run directories");
}

constexpr double kLast = 1e300;

double figure_of(const ViewedRun& run, RunOrder order) {
  const Evaluation* const evaluation = evaluation_of(run);
  switch (order) {
    case RunOrder::kAccuracy:
      return evaluation == nullptr ? kLast : -evaluation->acc1();
    case RunOrder::kLoss:
      return evaluation == nullptr ? kLast : evaluation->loss;
    case RunOrder::kSpeed:
      return -images_per_s_of(run);
    case RunOrder::kTime:
      return seconds_of(run);
    case RunOrder::kStart:
      return -std::chrono::duration<double>(run.record.start.time_since_epoch()).count();
    case RunOrder::kName:
      break;
  }
  return 0;
}

// Smaller comes first. Runs whose figure is absent or NaN come last.
double key_of(const ViewedRun& run, RunOrder order) {
  const double figure = figure_of(run, order);
  return std::isnan(figure) ? kLast : figure;
}

std::string accuracy_text(const ViewedRun& run) {
  const Evaluation* const evaluation = evaluation_of(run);
  if (evaluation != nullptr) return fmt::format("{:.2f} %", evaluation->acc1());
  const Curve& accuracy = run.curves.curve("val/acc1");
  return accuracy.empty() ? "-" : fmt::format("{:.2f} %", accuracy.last());
}

std::string speed_text(const ViewedRun& run) {
  const auto speed = static_cast<int64_t>(images_per_s_of(run));
  return speed > 0 ? count_text(speed) : "-";
}

std::string state_text(const ViewedRun& run) {
  if (run.state != RunState::kFailed || !run.record.exit_code)
    return std::string(name_of(run.state));
  return fmt::format("failed ({})", static_cast<int>(*run.record.exit_code));
}

// "20 (3 skipped)"
std::string count_of_steps(const ViewedRun& run) {
  const std::string steps = count_text(run.curves.last_step());
  const int64_t skipped = skipped_steps_of(run);
  return skipped == 0 ? steps : fmt::format("{} ({} skipped)", steps, count_text(skipped));
}

std::vector<std::string> row_of(const ViewedRun& run) {
  return {printable(run.name),
          state_text(run),
          utc_text(run.record.start),
          printable(flag_of(run.record, "arch")),
          std::to_string(run.record.ranks.size()),
          count_of_steps(run),
          accuracy_text(run),
          speed_text(run),
          seconds_text(seconds_of(run))};
}

std::string end_of(const ViewedRun& run, const char* curve) {
  const Curve& values = run.curves.curve(curve);
  return values.empty() ? "-" : value_text(values.last());
}

std::string exposed_text(const ViewedRun& run) {
  const std::optional<ExchangeSummary>& exchange = run.record.communication;
  return exchange ? seconds_text(exchange->mean_seconds().exposed) : "-";
}

std::string median_text(const ViewedRun& run) {
  const std::optional<StepTimes>& times = run.record.step_times;
  return times && times->count() > 0 ? seconds_text(times->quantile(0.5)) : "-";
}

// Whether all runs that have a final digest have the same one.
std::string bits_line(std::span<const ViewedRun> runs) {
  const bool all_known =
      std::ranges::all_of(runs, [](const ViewedRun& run) { return run.record.digest.has_value(); });
  if (!all_known) return "bits: not known, a run has no digest of final weights\n";
  const bool same = std::ranges::all_of(
      runs, [&](const ViewedRun& run) { return run.record.digest == runs[0].record.digest; });
  return same ? "bits: the same final weights\n" : "bits: the final weights differ\n";
}

}  // namespace

std::string list_runs(const fs::path& folder, RunOrder order) {
  std::vector<ViewedRun> runs;
  std::vector<std::string> unreadable;
  for (const fs::path& path : run_folders(folder)) {
    try {
      runs.push_back(view_run(path));
    } catch (const Error& error) {
      unreadable.push_back(fmt::format(
          "{}  cannot be read: {}\n", printable(path.filename().string()), error.why()));
    }
  }
  std::ranges::sort(
      runs, {}, [&](const ViewedRun& run) { return std::pair(key_of(run, order), run.name); });
  std::ranges::sort(unreadable);
  std::vector<std::vector<std::string>> rows = {
      {"run", "state", "began", "network", "ranks", "steps", "accuracy", "images/s", "time"}};
  for (const ViewedRun& run : runs) rows.push_back(row_of(run));
  std::string text = runs.empty() ? "" : text_table(rows, 4);
  for (const std::string& line : unreadable) text += line;
  return text;
}

std::string compare_runs(std::span<const ViewedRun> runs) {
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const ViewedRun& run : runs) rows[0].push_back(printable(run.name));
  const auto add = [&](const std::string& name, auto&& text_of) {
    std::vector<std::string> row = {name};
    for (const ViewedRun& run : runs) row.push_back(text_of(run));
    rows.push_back(row);
  };
  for (const FlagDifference& difference : flag_differences(runs)) {
    std::vector<std::string> row = {"--" + printable(difference.name)};
    for (const std::string& value : difference.values) {
      row.push_back(value.empty() ? "-" : printable(value));
    }
    rows.push_back(row);
  }
  add("state", state_text);
  add("ranks", [](const ViewedRun& run) { return std::to_string(run.record.ranks.size()); });
  add("steps", count_of_steps);
  add("training loss", [](const ViewedRun& run) { return end_of(run, "train/loss"); });
  add("test loss", [](const ViewedRun& run) { return end_of(run, "val/loss"); });
  add("accuracy", accuracy_text);
  add("images/s", speed_text);
  add("median step", median_text);
  add("exposed communication", exposed_text);
  add("time", [](const ViewedRun& run) { return seconds_text(seconds_of(run)); });
  add("data", [](const ViewedRun& run) { return printable(run.record.data_digest); });
  add("weights", [](const ViewedRun& run) {
    return run.record.digest ? to_hex(*run.record.digest) : std::string("-");
  });
  return text_table(rows, 1) + bits_line(runs);
}

}  // namespace lockstep::trainers
