// Sets of settings: presets of the tutorials, and defaults that depend on the data set.
#pragma once

#include <span>
#include <string>
#include <string_view>

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

}  // namespace lockstep::trainers
