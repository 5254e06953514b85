// --config FILE and --print-config: flags as lines "name = value" of TOML.
//
// TOML is not read by CLI11: version 2.1 cuts a string at # and keeps escapes, so a path would
// silently become another one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainers/options/command_line.h"

namespace lockstep::trainers {

struct ConfigEntry {
  std::string key;
  std::string value;  // a string's characters, a number in digits, an array with commas
  int line = 1;
};

// Parses strings, numbers, true, false and arrays of these, in the order of their lines. Errors:
// UsageError naming `file` and the line for text that is not TOML, and for tables, dates, nested
// arrays and strings of several lines, which flags do not need.
std::vector<ConfigEntry> parse_config(std::string_view text, std::string_view file);

// Returns the file that repeats the run of these options. It sets the flags that were given; the
// values of the others follow as comments.
std::string config_text(const Options& options);

}  // namespace lockstep::trainers
