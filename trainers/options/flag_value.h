// The text of a flag's value, checked and converted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "trainers/options/option_table.h"

namespace lockstep::trainers {

// Whole-string conversions; nothing for other text. "true", "false", "1", "0", in any case.
std::optional<bool> parse_bool(std::string_view text);
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_float(std::string_view text);  // finite only

// "a whole number from 1 to 1000000": what the flag's value may be, after "takes".
std::string describe_values(const Flag& flag, Program program);

// Checks `text` against the flag's kind, range and choices. `source`: where it stands, "--lr" or
// "LOCKSTEP_LR". Errors: UsageError with flag, value and what is allowed, or "not built yet".
void check_flag_value(const Flag& flag,
                      Program program,
                      std::string_view source,
                      std::string_view text);

UsageError missing_value(const Flag& flag, Program program, std::string_view source);
UsageError not_built(const Flag& flag, Program program, std::string_view source);

}  // namespace lockstep::trainers
