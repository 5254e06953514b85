// Color on terminals: labels of errors, warnings and notes, and the result.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace lockstep::trainers {

// --color auto: where the stream is a terminal that shows color and NO_COLOR is empty. A rank's
// standard output under mpirun is a terminal even where it goes into a file, so a launcher must
// set LOCKSTEP_COLOR.
enum class ColorChoice : uint8_t { kAuto, kAlways, kNever };
ColorChoice color_choice(std::string_view flag);

// For the whole process; until then it is kAuto.
void choose_color(ColorChoice choice, bool launched);

bool shows_color(std::FILE* to);

// `text` for this stream: as it is, or with its labels in color.
std::string painted(std::FILE* to, std::string_view text);

// With the labels of each line in color.
std::string with_color(std::string_view text);

}  // namespace lockstep::trainers
