// Puts arguments as people type them into the one form that the parser reads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "trainers/options/option_table.h"

namespace lockstep::trainers {

struct RewrittenArguments {
  std::vector<std::string> arguments;  // "--batch-size=64", "--quiet=true", "DIR", "-qv"
  std::vector<std::string> notes;      // one line for each flag that changes nothing here
};

// - and _ are the same in long flags; "--flag True" becomes "--flag=true", "--no-flag"
// "--flag=false"; aliases and shorthands become what they stand for; the flags of other trainers
// are answered. What follows "--" is kept. `source`, if not empty, names the value's place in
// errors instead of the argument itself.
// Errors: UsageError for an unknown flag, a missing value, a flag that is not built yet.
RewrittenArguments rewrite_arguments(Program program,
                                     std::span<const std::string> arguments,
                                     std::string_view source = {});

// For an argument that starts with a dash and is no flag; suggests the nearest one.
UsageError unknown_flag(Program program, std::string_view argument);

}  // namespace lockstep::trainers
