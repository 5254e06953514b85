#include "inspect/runs/watch_frame.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>

#include <fmt/core.h>

#include "core/words.h"
#include "inspect/runs/frame_text.h"
#include "trainers/page/verdict.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers {
namespace {

constexpr int kTrainColor = 36, kTestColor = 33, kWarningColor = 31;

// The last value of a curve, or `otherwise`.
double last_of(const ViewedRun& run, const char* curve, double otherwise) {
  const Curve& values = run.curves.curve(curve);
  return values.empty() ? otherwise : values.last();
}

std::vector<std::string> frame_heading(const ViewedRun& run, int columns) {
  return flowed({printable(run.name),
                 std::string(name_of(run.state)),
                 fmt::format("{} on {}",
                             printable(flag_of(run.record, "arch")),
                             counted(std::ssize(run.record.ranks), "rank")),
                 seconds_text(seconds_of(run))},
                columns);
}

// The progress of the run, in words and as a bar.
std::vector<std::string> frame_progress(const ViewedRun& run, int columns) {
  const int64_t step = run.curves.last_step();
  const int64_t end = run.record.plan.last_step;
  std::vector<std::string> facts;
  if (end > 0) {
    facts.push_back(fmt::format("step {} of {}", count_text(step), count_text(end)));
  } else {
    facts.push_back(fmt::format("step {}", count_text(step)));
  }
  if (const std::string& epochs = flag_of(run.record, "epochs"); !epochs.empty()) {
    facts.push_back(fmt::format("epoch {} of {}", run.curves.last_epoch() + 1, printable(epochs)));
  }
  const double step_s = last_of(run, "train/step_s", 0);
  if (run.state == RunState::kRunning && end > step && step_s > 0) {
    facts.push_back(fmt::format("{} left", seconds_text(step_s * static_cast<double>(end - step))));
  }
  std::vector<std::string> lines = flowed(facts, columns);
  if (end > 0) {
    const double share = static_cast<double>(step) / static_cast<double>(end);
    lines.push_back(bar_text(share, columns));
  }
  return lines;
}

std::vector<std::string> frame_speed(const ViewedRun& run, int columns) {
  const auto ranks = std::ssize(run.record.ranks);
  const auto rate = static_cast<int64_t>(last_of(run, "train/img_s", 0));
  std::vector<std::string> facts = {fmt::format("{} images/s", count_text(rate))};
  if (ranks > 1) {
    facts.push_back(fmt::format("{} per rank", count_text(rate / ranks)));
    const double step_s = last_of(run, "train/step_s", 0);
    const double exposed_s = last_of(run, "train/comm_exposed_s", 0);
    const double share = step_s > 0 ? std::min(1.0, exposed_s / step_s) : 0;
    facts.push_back(fmt::format("exposed communication {:.0f} % of a step", 100 * share));
  }
  facts.push_back(
      fmt::format("waits for images {:.0f} %", 100 * last_of(run, "train/loader_waited", 0)));
  return flowed(facts, columns);
}

// A strip over the run's steps that shows where this rank was the slowest; darker means slower.
std::string slowest_strip(const ViewedRun& run, int64_t rank, int columns) {
  std::vector<double> skews(static_cast<size_t>(columns), 0);
  const auto last_step = static_cast<double>(std::max<int64_t>(1, run.curves.last_step()));
  for (const SlowestRankSpan& span : run.curves.slowest()) {
    if (span.rank != rank) continue;
    const auto at = static_cast<size_t>(static_cast<double>(span.last) / last_step * columns);
    double& skew = skews[std::clamp<size_t>(at, 1, skews.size()) - 1];
    skew = std::max(skew, span.skew);
  }
  std::string strip;
  for (const double skew : skews) {
    strip += skew >= 0.5 ? "█" : skew >= 0.25 ? "▓" : skew >= kSlowSkew ? "▒" : "·";
  }
  return strip;
}

std::vector<std::string> frame_ranks(const ViewedRun& run, TerminalSize size) {
  const auto count = std::ssize(run.record.ranks);
  const auto max_rows = std::max<std::ptrdiff_t>(2, size.rows / 6);
  if (count < 2 || size.columns < 30) return {};
  const auto slow = [&](int64_t rank) {
    const auto found = run.curves.times_slow().find(rank);
    return found == run.curves.times_slow().end() ? 0 : found->second;
  };
  std::vector<int64_t> shown(static_cast<size_t>(count));
  std::iota(shown.begin(), shown.end(), 0);
  if (count > max_rows) std::ranges::stable_sort(shown, std::greater(), slow);
  shown.resize(static_cast<size_t>(std::min(count, max_rows)));
  const auto lines = static_cast<double>(std::max<int64_t>(1, run.curves.train_lines()));
  std::vector<std::string> rows;
  for (const int64_t rank : shown) {
    const std::string label = fmt::format("rank {:<3} ", rank);
    const std::string text =
        fmt::format(" slow {:3.0f} %", 100 * static_cast<double>(slow(rank)) / lines);
    const int width = size.columns - static_cast<int>(label.size() + text.size());
    rows.push_back(fmt::format("{}{}{}", label, slowest_strip(run, rank, width), text));
  }
  if (count > max_rows) {
    rows.push_back(cut_to(fmt::format("{} more ranks", count - max_rows), size.columns));
  }
  return rows;
}

// A character for each column of the steps so far, blank before the first value. The height is
// logarithmic where values differ widely.
std::string sparkline(const Curve& curve, int64_t last_step, int columns) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double low = curve.best_low(), high = curve.best_high();
  const Axis axis{.low = low, .high = high, .logarithmic = low > 0 && high > 20 * low};
  const auto block = [&](double value) {
    const double share = axis.place(value);  // NaN where all values are the same
    return kBlocks[share > 0 ? static_cast<size_t>(std::min(share, 1.0) * 7.99) : 0];
  };
  std::string text;
  size_t next = 0;
  for (int column = 1; column <= columns; ++column) {
    const double end = static_cast<double>(last_step) * column / columns;
    while (next < curve.points().size() && curve.points()[next].x <= end) ++next;
    text += next == 0 ? " " : block(curve.points()[next - 1].mean);
  }
  return text;
}

std::vector<std::string> frame_curves(const ViewedRun& run, TerminalSize size, bool colors) {
  struct Shown {
    const char* curve;
    const char* label;
    int color;
  };
  constexpr Shown kShown[] = {{"train/loss", "training loss", kTrainColor},
                              {"val/loss", "test loss", kTestColor},
                              {"train/acc1", "training accuracy, %", kTrainColor},
                              {"val/acc1", "test accuracy, %", kTestColor}};
  std::vector<std::string> lines;
  for (const auto& [name, label, color] : kShown) {
    const Curve& curve = run.curves.curve(name);
    if (curve.empty() || std::ssize(lines) >= size.rows) continue;
    const std::string text = fmt::format("{:<20} {:>8} ", label, value_text(curve.last()));
    const int width = size.columns - static_cast<int>(text.size());
    lines.push_back(FrameLine(size.columns, colors)
                        .add(text)
                        .add(sparkline(curve, run.curves.last_step(), width), color)
                        .text());
  }
  return lines;
}

std::vector<std::string> frame_warnings(const ViewedRun& run) {
  const RunCurves& curves = run.curves;
  std::vector<std::string> texts;
  if (run.has_numerics) texts.emplace_back("numerics.json says where an infinity or a NaN began");
  if (const int64_t lost = curves.curve("train/loss").nonfinite(); lost > 0) {
    texts.push_back(fmt::format("{} logged losses were infinite or NaN", count_text(lost)));
  }
  if (const int64_t skipped = skipped_steps_of(run); skipped > 0) {
    texts.push_back(fmt::format("{} steps skipped, loss scale {}",
                                count_text(skipped),
                                value_text(last_of(run, "train/loss_scale", 1))));
  }
  const Curve& waited = curves.curve("train/loader_waited");
  if (!waited.empty() && waited.mean() >= kLoaderWaits) {
    texts.push_back(fmt::format("steps wait {:.0f} % of their time for images ({})",
                                100 * waited.mean(),
                                printable(curves.loader_busy_with())));
  }
  for (const auto& [rank, times] : curves.times_slow()) {
    if (times < 5 || 2 * times < curves.train_lines()) continue;
    texts.push_back(fmt::format("rank {} is slower than the others in most steps", rank));
  }
  if (const int64_t broken = curves.broken_lines(); broken > 0) {
    texts.push_back(fmt::format("{} lines of metrics.jsonl cannot be read", count_text(broken)));
  }
  return texts;
}

// Warnings, then the last evaluations.
std::vector<std::string> frame_news(const ViewedRun& run, TerminalSize size, bool colors) {
  std::vector<std::string> lines;
  for (const std::string& text : frame_warnings(run)) {
    lines.push_back(FrameLine(size.columns, colors).add("! " + text, kWarningColor).text());
  }
  const std::span<const CurvePoint> accuracy = run.curves.curve("val/acc1").points();
  const auto rows = static_cast<size_t>(std::max<std::ptrdiff_t>(0, size.rows - std::ssize(lines)));
  for (const CurvePoint& point : accuracy.last(std::min(accuracy.size(), rows))) {
    lines.push_back(cut_to(fmt::format("step {}: test accuracy {:.2f} %",
                                       count_text(static_cast<int64_t>(point.x)),
                                       point.mean),
                           size.columns));
  }
  lines.resize(std::min(lines.size(), static_cast<size_t>(size.rows)));
  return lines;
}

std::string no_figures(const ViewedRun& run) {
  if (run.state != RunState::kRunning) return "It logged no figures.";
  const std::string& every = flag_of(run.record, "print-freq");
  return fmt::format("No figures yet: they come after the first step, and every {} steps.",
                     every.empty() ? "few" : printable(every));
}

std::string state_sentence(const ViewedRun& run, bool follows) {
  switch (run.state) {
    case RunState::kRunning:
      return follows ? "The run goes on; Ctrl-C closes this view alone." : "The run goes on.";
    case RunState::kBroken:
      return "The run has ended: it was killed, its process is gone.";
    case RunState::kDone:
    case RunState::kStopped:
    case RunState::kFailed:
      break;
  }
  std::string more;
  if (run.state == RunState::kFailed && run.record.exit_code) {
    more = ", " + exit_text(*run.record.exit_code);
  }
  if (const Evaluation* const evaluation = evaluation_of(run)) {
    more = fmt::format(", {:.2f} % of the test images", evaluation->acc1());
  }
  return fmt::format("The run has ended: {}{}.", name_of(run.state), more);
}

}  // namespace

std::vector<std::string> watch_frame(const ViewedRun& run, const WatchView& view) {
  const TerminalSize size = view.size;
  std::vector<std::string> lines = frame_heading(run, size.columns);
  const auto append = [&](const std::vector<std::string>& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  };
  append(frame_progress(run, size.columns));
  if (run.curves.train_lines() > 0) {
    append(frame_speed(run, size.columns));
  } else {
    append({cut_to(no_figures(run), size.columns)});
  }
  const std::vector<std::string> of_ranks = frame_ranks(run, size);
  const std::vector<std::string> latest =
      frame_news(run, {size.columns, std::clamp(size.rows / 6, 1, 5)}, view.colors);
  const int others =
      static_cast<int>(lines.size() + of_ranks.size() + latest.size()) + 1;  // the last line
  append(frame_curves(run, {size.columns, size.rows - others}, view.colors));
  append(of_ranks);
  append(latest);
  lines.resize(std::min(lines.size(), static_cast<size_t>(std::max(0, size.rows - 1))));
  if (size.rows > 0) lines.push_back(cut_to(state_sentence(run, view.follows), size.columns));
  return lines;
}

}  // namespace lockstep::trainers
