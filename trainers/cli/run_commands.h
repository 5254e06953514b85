// Commands that look at runs: report, runs, compare.
#pragma once

#include <string>
#include <vector>

namespace lockstep::trainers {

// Writes the page of these run directories to `file`, or where it belongs if that is empty, and
// returns the line that tells where. Errors: those of view_run() and of writing.
std::string run_report(const std::vector<std::string>& directories, const std::string& file);

}  // namespace lockstep::trainers
