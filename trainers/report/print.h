// Writes to the standard streams.
#pragma once

#include <cstdint>
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

// --color. kAuto means color where the stream is a terminal that shows color and NO_COLOR is empty.
// Under mpirun a rank's standard output is a terminal even where it goes into a file, so there
// LOCKSTEP_COLOR must be set.
enum class ColorChoice : uint8_t { kAuto, kAlways, kNever };
ColorChoice color_choice(std::string_view flag);

// Chooses for the whole process; the default is kAuto.
void choose_color(ColorChoice choice, bool launched);

bool shows_color(std::FILE* to);

// Returns `text` for this stream: unchanged, or with its labels in color.
std::string painted(std::FILE* to, std::string_view text);

// Returns `text` with the labels of each line in color.
std::string with_color(std::string_view text);

}  // namespace lockstep::trainers
