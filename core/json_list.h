// Reads one list out of JSON text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The list of strings under `key` of the object that the text holds. Empty for any other text.
std::vector<std::string> strings_under(std::string_view json, std::string_view key);

}  // namespace lockstep
