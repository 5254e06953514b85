// Defaults that follow the data set: what trains well on one is wrong for another.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainers/options/option_table.h"

namespace lockstep::trainers {

// The set that a program trains on when it is given none: "digits", "shapes".
std::string_view built_in_dataset(Program program);

// The name behind --dataset `name` and --data `dir`, either of which may be empty or "auto"; "auto"
// where the folder does not tell, which is an error later.
std::string dataset_name(Program program, const std::string& name, const std::string& dir);

struct DataDefaults {
  std::string_view dataset;
  std::span<const std::string_view> arguments;  // as one would type them: "--arch=resnet20"
};

// Origin "data set" in run.json. Sets that are not named take the flags' own defaults.
std::span<const DataDefaults> data_defaults(Program program);

}  // namespace lockstep::trainers
