// The version of the project.
#pragma once

#include <string_view>

#pragma GCC visibility push(default)
namespace lockstep {

// Version of the project, as CMakeLists.txt has it: "0.1.0".
std::string_view version();

}  // namespace lockstep
#pragma GCC visibility pop
