// What besides flags and data decides a run's bits on a machine.
#pragma once

#include <map>
#include <string>

namespace lockstep::trainers {

// Of the program, its processor level and its libraries: "lockstep", "isa", "onednn".
std::map<std::string, std::string> versions();

}  // namespace lockstep::trainers
