#include "trainers/report/print.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/words.h"

namespace lockstep::trainers {
namespace {

std::atomic<int> first_errno = 0;

}  // namespace

void print(std::FILE* to, std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0;
  int none = 0;
  if (!written && to == stdout) first_errno.compare_exchange_strong(none, errno);
}

void print_line(std::FILE* to, const std::string& line) {
  print(to, without_controls(line) + '\n');
}

int output_errno() {
  return first_errno;
}

std::optional<TerminalSize> terminal_size(std::FILE* to) {
  winsize window{};
  if (ioctl(fileno(to), TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return std::nullopt;
  return TerminalSize{window.ws_col, window.ws_row};
}

namespace {

ColorChoice chosen = ColorChoice::kAuto;
bool under_launcher = false;

struct Label {
  std::string_view text;  // at the beginning of a line
  std::string_view code;  // of ECMA-48's SGR
};

constexpr std::string_view kRed = "1;31", kYellow = "1;33", kCyan = "36", kBold = "1";
constexpr Label kLabels[] = {{"lockstep: error:", kRed},
                             {"lockstep: warning:", kYellow},
                             {"  why:", kBold},
                             {"  try:", kBold},
                             {"note:", kCyan},
                             {"Accuracy is ", kBold}};

bool is_empty(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return value == nullptr || *value == '\0';
}

}  // namespace

ColorChoice color_choice(std::string_view flag) {
  if (flag == "always") return ColorChoice::kAlways;
  return flag == "never" ? ColorChoice::kNever : ColorChoice::kAuto;
}

void choose_color(ColorChoice choice, bool launched) {
  chosen = choice;
  under_launcher = launched;
}

bool shows_color(std::FILE* to) {
  if (chosen != ColorChoice::kAuto) return chosen == ColorChoice::kAlways;
  if (!is_empty("NO_COLOR") || isatty(fileno(to)) == 0) return false;
  if (to == stdout && under_launcher) return false;
  const char* terminal = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string painted(std::FILE* to, std::string_view text) {
  return shows_color(to) ? with_color(text) : std::string(text);
}

std::string with_color(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
    text.remove_prefix(line.size());
    for (const auto& [label, code] : kLabels) {
      if (!line.starts_with(label)) continue;
      result += fmt::format("\x1b[{}m{}\x1b[0m", code, label);
      line.remove_prefix(label.size());
      break;
    }
    result += line;
  }
  return result;
}

}  // namespace lockstep::trainers
