#include "trainers/report/console.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "core/words.h"
#include "trainers/report/errors.h"
#include "trainers/report/print.h"

namespace lockstep::trainers {
namespace {

std::string meter(std::string_view name, double value, double average) {
  return fmt::format("\t{} {:.3f} ({:.3f})", name, value, average);
}

}  // namespace

ProgressMode choose_progress(const std::string& flag, bool launched) {
  std::string mode = flag;
  if (mode == "auto") {
    const char* wanted = std::getenv("LOCKSTEP_PROGRESS");  // NOLINT(concurrency-mt-unsafe)
    if (wanted != nullptr && *wanted != '\0') {
      mode = wanted;
    } else {
      const bool shows = isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
      mode = !launched && shows ? "bar" : "line";
    }
  }
  if (mode == "bar") return ProgressMode::kBar;
  if (mode == "json") return ProgressMode::kJson;
  return mode == "none" ? ProgressMode::kNone : ProgressMode::kLine;
}

std::string progress_line(int epoch, int64_t step, int64_t steps, const StepMetrics& m) {
  const size_t width = std::to_string(steps).size();
  std::string line = fmt::format("Epoch: [{}][{:>{}}/{}]", epoch, step, width, steps);
  line += fmt::format("\tTime {:6.3f} ({:6.3f})", m.step_s, m.step_s_avg);
  line += fmt::format("\tData {:6.3f} ({:6.3f})", m.data_s, m.data_s_avg);
  line += fmt::format("\tLoss {:.4e} ({:.4e})", m.loss, m.loss_avg);
  line += fmt::format("\tAcc@1 {:6.2f} ({:6.2f})", m.acc1, m.acc1_avg);
  line += fmt::format("\tAcc@5 {:6.2f} ({:6.2f})", m.acc5, m.acc5_avg);
  line += fmt::format("\timg/s {:.0f}\teta {}\tlr {:g}", m.images_per_s, clock_text(m.eta_s), m.lr);
  if (m.loss_scale != 1 || m.skipped_steps > 0) {
    line += fmt::format("\tScale {:g} ({} skipped)", m.loss_scale, m.skipped_steps);
  }
  constexpr double kWorthALine = 0.05;
  if (m.loader_waited >= kWorthALine) {
    line += fmt::format("\tloader waited {:.0f}% ({})", 100 * m.loader_waited, m.loader_busy_with);
  }
  if (m.ranks == 1) return line;
  return line + fmt::format("\tComm {:.1f}+{:.1f} ms\tslowest rank {} (+{:.0f}%)",
                            1e3 * m.comm_exposed_s,
                            1e3 * m.comm_hidden_s,
                            m.slowest_rank,
                            100 * m.skew);
}

std::string test_line(int64_t batch, int64_t batches, const TestMetrics& m) {
  std::string line =
      fmt::format("Test: [{:>{}}/{}]", batch, std::to_string(batches).size(), batches);
  line += fmt::format("\tTime {:6.3f} ({:6.3f})", m.batch_s, m.batch_s_avg);
  line += fmt::format("\tLoss {:.4e} ({:.4e})", m.loss, m.loss_avg);
  line += fmt::format("\tAcc@1 {:6.2f} ({:6.2f})", m.acc1, m.acc1_avg);
  return line + fmt::format("\tAcc@5 {:6.2f} ({:6.2f})", m.acc5, m.acc5_avg);
}

std::string apex_progress_line(int epoch, int64_t step, int64_t steps, const StepMetrics& m) {
  return fmt::format("Epoch: [{}][{}/{}]", epoch, step, steps) +
         meter("Time", m.step_s, m.step_s_avg) +
         meter("Throughput", m.images_per_s, m.images_per_s_avg) +
         fmt::format("\tLoss {:.10f} ({:.4f})", m.loss, m.loss_avg) +
         meter("Prec@1", m.acc1, m.acc1_avg) + meter("Prec@5", m.acc5, m.acc5_avg);
}

std::string apex_test_line(int64_t batch, int64_t batches, const TestMetrics& m) {
  return fmt::format("Test: [{}/{}]", batch, batches) + meter("Time", m.batch_s, m.batch_s_avg) +
         meter("Speed", m.images / m.batch_s, m.images_avg / m.batch_s_avg) +
         fmt::format("\tLoss {:.4f} ({:.4f})", m.loss, m.loss_avg) +
         meter("Prec@1", m.acc1, m.acc1_avg) + meter("Prec@5", m.acc5, m.acc5_avg);
}

std::string progress_bar(int epoch, int epochs, int64_t step, int64_t steps, const StepMetrics& m) {
  constexpr int64_t kCells = 7;  // the whole fits into 80 columns
  const int64_t filled = steps == 0 ? 0 : kCells * step / steps;
  std::string bar;
  for (int64_t i = 0; i < kCells; ++i) bar += i < filled ? "█" : "·";
  return fmt::format("Epoch {}/{} {:3}%|{}| {}/{} [{:.1f}k img/s, loss {:.3f}, acc {:.1f}, eta {}]",
                     epoch + 1,
                     epochs,
                     steps == 0 ? 0 : 100 * step / steps,
                     bar,
                     step,
                     steps,
                     m.images_per_s / 1000,
                     m.loss_avg,
                     m.acc1_avg,
                     clock_text(m.eta_s));
}

std::string clock_text(double seconds) {
  const auto total = static_cast<int64_t>(std::isfinite(seconds) ? std::max(0.0, seconds) : 0.0);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

std::string accuracy_line(const Evaluation& evaluation, bool apex_lines) {
  if (apex_lines) {
    return fmt::format(" * Prec@1 {:.3f} Prec@5 {:.3f}", evaluation.acc1(), evaluation.acc5());
  }
  return fmt::format(" * Acc@1 {:.3f} Acc@5 {:.3f}", evaluation.acc1(), evaluation.acc5());
}

std::string average_line(const Evaluation& evaluation) {
  return fmt::format(
      " * of --ema: Acc@1 {:.3f} Acc@5 {:.3f}", evaluation.acc1(), evaluation.acc5());
}

void Console::info(const std::string& line) {
  if (!options_.quiet) result(line);
}

void Console::result(const std::string& line) {
  if (!options_.prints) return;
  end_bar();
  write(out(), line);
}

void Console::tutorial(TutorialLines kind, const std::string& line) {
  if (!options_.prints || options_.tutorial != kind) return;
  end_bar();
  write(options_.json || progress_is_json() ? stderr : stdout, line);
}

void Console::warn(const std::string& line) {
  if (!options_.prints) return;
  end_bar();
  write(stderr, line);
}

void Console::progress_line(const std::string& line) {
  if (options_.progress == ProgressMode::kLine) info(line);
}

void Console::progress_bar(const std::string& line) {
  if (!options_.prints || options_.quiet || options_.progress != ProgressMode::kBar) return;
  // A wrapped bar could not be replaced. The cursor takes a column.
  const std::optional<TerminalSize> size = terminal_size(stderr);
  print(stderr, fmt::format("\r\033[K{}", size ? cut_to(line, size->columns - 1) : line));
  bar_open_ = true;
}

void Console::progress_json(const std::string& line) {
  if (!options_.prints || options_.quiet || !progress_is_json()) return;
  print(options_.json ? stderr : stdout, line);
}

void Console::summary(const std::string& line) {
  if (!options_.prints || !options_.json) return;
  end_bar();
  print(stdout, line);
  enable_error_summary(false);
}

std::FILE* Console::out() const {
  const bool taken =
      options_.json || progress_is_json() || options_.tutorial != TutorialLines::kNone;
  return taken ? stderr : stdout;
}

void Console::end_bar() {
  if (bar_open_) print(stderr, "\n");
  bar_open_ = false;
}

void Console::write(std::FILE* to, const std::string& line) const {
  if (options_.sink) return options_.sink(line);
  print(to, painted(to, without_controls(line)) + '\n');
}

}  // namespace lockstep::trainers
