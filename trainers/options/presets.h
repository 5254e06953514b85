// The settings of the tutorials, as the flags one would type.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::trainers {

struct Preset {
  std::string_view name;
  std::span<const std::string_view> arguments;
};

// Requires: a built choice of --preset.
const Preset& preset_named(std::string_view name);

}  // namespace lockstep::trainers
