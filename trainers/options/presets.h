// Sets of settings: presets of the tutorials, with the flags as their scripts spell them, and
// defaults that depend on the data set.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

// Flags as one would type them: "--arch=resnet20".
using Arguments = std::span<const std::string_view>;

// Requires: a choice of --preset.
Arguments preset_named(std::string_view name);

struct NamedArguments {
  std::string_view name;
  Arguments arguments;
};

// Returns the data sets that have defaults of their own, with these defaults.
std::span<const NamedArguments> data_defaults(Program program);

// The data set that a program trains on when none is named: "digits", "shapes".
std::string_view built_in_dataset(Program program);

// Returns the data set that --dataset `name` and --data `dir` mean, either of which may be empty or
// "auto"; "auto" where the folder does not tell, which is an error later.
std::string dataset_name(Program program, const std::string& name, const std::string& dir);

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
