// Versions that decide the bits of a training on a machine.
#pragma once

#include <map>
#include <string>

namespace lockstep {

using LibraryVersions = std::map<std::string, std::string>;  // by name: "cudnn"

// "lockstep", this library; "isa", the processor level; "onednn" and "onednn_isa", the library and
// its own level.
LibraryVersions library_versions();

}  // namespace lockstep
