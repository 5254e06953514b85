// Writes to the standard streams.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::trainers {

// Writes `text` and flushes. Never throws: a closed pipe or terminal, or a full disk behind a log,
// must not end a training.
void print(std::FILE* to, std::string_view text);

// Writes a line that may quote foreign text: without control characters.
void print_line(std::FILE* to, const std::string& line);

// The errno of the first failure to print on standard output; 0: there was none.
int output_errno();

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

// The size of the terminal behind `to`; nothing where it is none, or does not say.
std::optional<TerminalSize> terminal_size(std::FILE* to);

}  // namespace lockstep::trainers
