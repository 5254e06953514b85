// The command `lockstep report`.
#pragma once

#include <string>
#include <vector>

namespace lockstep::trainers {

// Writes the report of these run directories to `file`; an empty `file` stands for the default
// place. Returns a line that names the file. Errors: those of view_run() and of writing.
std::string run_report(const std::vector<std::string>& directories, const std::string& file);

}  // namespace lockstep::trainers
