// Accepts flags as the tutorials' scripts spell them, for presets that replace such a script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

// Returns the values of a flag in `arguments`, in order. `names`: "-c --config".
std::vector<std::string> values_in(const std::vector<std::string>& arguments,
                                   std::string_view names);
// The last of them, else `otherwise`.
std::string value_in(const std::vector<std::string>& arguments,
                     std::string_view names,
                     std::string_view otherwise);

// Returns `arguments` in the spelling of the flag table: "-e 3" of a demo preset becomes
// "--epochs=3", while -e without a number still evaluates. For other presets, returns them
// unchanged.
std::vector<std::string> respelled(std::string_view preset, std::vector<std::string> arguments);

// The first preset that spells a flag so; empty: none does.
std::string_view preset_with(std::string_view name);

// "With --preset NAME: -e = --epochs; ..." for each of the program's presets that has such flags.
// For --help-all.
std::string spelling_help(Program program);

}  // namespace lockstep::trainers
