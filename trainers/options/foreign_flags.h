// Flags of the trainers people come from that have no counterpart here: never "unknown".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::trainers {

struct ForeignFlag {
  std::string_view name;  // without dashes
  bool takes_value = false;
  bool refused = false;       // it would change the result, or the user expects it to
  std::string_view harmless;  // values accepted although refused: "-1|0"
  std::string_view origin;    // whose flag it is
  std::string_view reason;
  std::string_view instead;  // what to do here
};

std::span<const ForeignFlag> foreign_flags();

// Null when there is none. `name`: without dashes.
const ForeignFlag* find_foreign_flag(std::string_view name);

// The line that says what to use instead, for a flag that is accepted and changes nothing.
// Errors: UsageError for one that is refused.
std::string answer_foreign_flag(const ForeignFlag& flag, std::string_view value);

}  // namespace lockstep::trainers
