// Flags as the tutorials' scripts spell them, where a preset stands for such a script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trainers {

// The values of a flag among `arguments`, in their order; `names`: "-c --config".
std::vector<std::string> values_in(const std::vector<std::string>& arguments,
                                   std::string_view names);
// The last of them, else `otherwise`.
std::string value_in(const std::vector<std::string>& arguments,
                     std::string_view names,
                     std::string_view otherwise);

// `arguments` in the spelling of the flag table: "-e 3" of a demo preset is "--epochs=3", while -e
// without a number still evaluates. Those of other presets come back as they are.
std::vector<std::string> respelled(std::string_view preset, std::vector<std::string> arguments);

// The first preset that spells a flag so; empty: none does.
std::string_view preset_with(std::string_view name);

// "With --preset NAME: -e is --epochs, ..." for each preset that has such flags; for --help-all.
std::string spelling_help();

}  // namespace lockstep::trainers
