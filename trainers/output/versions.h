// Versions that decide a run's bits on a machine, besides flags and data.
#pragma once

#include <map>
#include <string>

namespace lockstep::trainers {

// Versions of the program, its processor level and its libraries: "lockstep", "isa", "onednn".
std::map<std::string, std::string> versions();

}  // namespace lockstep::trainers
