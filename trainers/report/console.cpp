#include "trainers/report/console.h"

#include <fmt/format.h>

namespace lockstep::trainers {
namespace {

void write_line(std::FILE* file, const std::string& line) {
  fmt::print(file, "{}\n", line);
  std::fflush(file);
}

}  // namespace

void Console::info(const std::string& line) {
  if (!options_.quiet) result(line);
}

void Console::result(const std::string& line) {
  if (!options_.prints) return;
  end_bar();
  write_line(out(), line);
}

void Console::tutorial(const std::string& line) {
  if (!options_.prints || !options_.tutorial) return;
  end_bar();
  write_line(stdout, line);
}

void Console::warn(const std::string& line) {
  if (!options_.prints) return;
  end_bar();
  write_line(stderr, line);
}

void Console::progress_line(const std::string& line) {
  if (options_.progress == ProgressMode::kLine) info(line);
}

void Console::progress_bar(const std::string& line) {
  if (!options_.prints || options_.quiet || options_.progress != ProgressMode::kBar) return;
  fmt::print(stderr, "\r\033[K{}", line);
  bar_open_ = true;
}

void Console::end_bar() {
  if (bar_open_) fmt::print(stderr, "\n");
  bar_open_ = false;
}

}  // namespace lockstep::trainers
