// Colors on terminals: for the labels of errors, warnings and notes, and for the result.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace lockstep::trainers {

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
