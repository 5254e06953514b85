#include "trainers/report/print.h"

#include <atomic>
#include <cerrno>

#include <sys/ioctl.h>

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

}  // namespace lockstep::trainers
