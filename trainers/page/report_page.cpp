#include "trainers/page/report_page.h"

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/version.h"
#include "core/words.h"
#include "trainers/config/run_files.h"
#include "trainers/page/html.h"
#include "trainers/page/report_parts.h"
#include "trainers/page/verdict.h"
#include "trainers/report/number_text.h"
#include "trainers/report/process.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers {
namespace {

const char* class_of(RunState state) {
  switch (state) {
    case RunState::kDone:
      return "good";
    case RunState::kFailed:
    case RunState::kBroken:
      return "bad";
    case RunState::kStopped:
    case RunState::kRunning:
      break;
  }
  return "warn";
}

std::string tile(const std::string& value, std::string_view name) {
  return fmt::format(
      "<div class=\"card tile\"><b>{}</b><span>{}</span></div>\n", value, escaped(name));
}

std::string tiles(const ViewedRun& run) {
  const std::optional<FinalMetrics>& final = run.record.final_metrics;
  std::string text;
  if (const Evaluation* const evaluation = evaluation_of(run)) {
    text += tile(fmt::format("{:.2f} %", evaluation->acc1()), "test accuracy");
    text += tile(fmt::format("{:.4f}", evaluation->loss), "test loss");
  }
  text += tile(count_text(run.curves.last_step()), "steps");
  if (const auto speed = static_cast<int64_t>(images_per_s_of(run)); speed > 0) {
    text += tile(count_text(speed), "images/s");
  }
  text += tile(seconds_text(seconds_of(run)), "wall time");
  if (final && final->first_step_s > 0)
    text += tile(seconds_text(final->first_step_s), "until the first step was done");
  return "<div class=\"tiles\">\n" + text + "</div>\n";
}

std::string opening(const ViewedRun& run) {
  std::string sentences;
  for (const std::string& sentence : verdict(run)) sentences += " " + escaped(sentence);
  return fmt::format(
      "<header>\n<h1>{}<span class=\"chip {}\">{}</span></h1>\n"
      "<p class=\"sub\">{} · {} · began {}</p>\n<p class=\"verdict\">{}</p>\n{}</header>\n",
      escaped(run.name),
      class_of(run.state),
      escaped(name_of(run.state)),
      escaped(flag_of(run.record, "arch")),
      counted(std::ssize(run.record.ranks), "rank"),
      utc_text(run.record.start),
      sentences,
      tiles(run));
}

std::string one_run(const ViewedRun& run) {
  return opening(run) + html_section("Curves", "", curve_charts({&run, 1})) +
         html_section("Where the time went", "", time_charts(run)) + mistake_parts(run) +
         html_section(
             "Bucket plan",
             "Gradients are summed over ranks bucket by bucket, the last layers' first. Times are "
             "rank 0's means since the step began.",
             bucket_table(run)) +
         html_section(
             "Bits", "What fixes the bits of this run, and where it may go on.", bits_of(run)) +
         html_section("Configuration", "", configuration(run));
}

std::string several_runs(std::span<const ViewedRun> runs) {
  return fmt::format("<header>\n<h1>{} runs side by side</h1>\n</header>\n", runs.size()) +
         figures_table(runs) + html_section("Flags that differ", "", different_flags(runs)) +
         html_section("Curves", "", curve_charts(runs));
}

}  // namespace

std::string report_page(std::span<const ViewedRun> runs) {
  const bool one = runs.size() == 1;
  const std::string title =
      one ? runs.front().name : fmt::format("{} and {} more", runs.front().name, runs.size() - 1);
  const std::string body = one ? one_run(runs.front()) : several_runs(runs);
  return html_page("Lockstep · " + title,
                   body + fmt::format("<footer>Lockstep {} made this page from run.json and "
                                      "metrics.jsonl.</footer>\n",
                                      version()));
}

void write_report(const std::filesystem::path& directory) {
  ViewedRun run = view_run(directory);
  add_trace(run);
  write_file_atomically(directory / kReportFile, report_page({&run, 1}));
}

}  // namespace lockstep::trainers
