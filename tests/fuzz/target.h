// Each reader of bytes from outside, as a function of bytes. libFuzzer looks for input that breaks
// one (tests/long/fuzz.py); test_fuzz gives each its corpus, and changed copies of it.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::fuzz {

struct Target {
  std::string_view name;
  // Takes any bytes. It may throw lockstep::Error, which is an answer; nothing else.
  void (*read)(std::string_view input);
  // Inputs to begin with. The first one is sound.
  std::vector<std::string> (*seeds)();
};

std::span<const Target> all_targets();
std::span<const Target> file_targets();
std::span<const Target> image_targets();
std::span<const Target> text_targets();
std::span<const Target> wire_targets();

inline void PrintTo(const Target& target, std::ostream* out) {
  *out << target.name;
}

// Null where there is none of this name.
const Target* find_target(std::string_view name);

// Throws std::logic_error for text that a terminal would not print as it is.
void check_message(const std::string& text);

// Gives the bytes to the target. Throws std::logic_error for a message of ours that a terminal
// would not print as it is.
void run(const Target& target, std::string_view input);

}  // namespace lockstep::fuzz
