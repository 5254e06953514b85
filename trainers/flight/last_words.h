// The last lines of a rank's error, which are about all ranks.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::trainers {

// Returns the lines at the end of a rank's error: the verdict for rank 0, and for all ranks the
// command that shows more. Empty where the run has no records.
std::string last_words(const std::filesystem::path& run, int rank);

}  // namespace lockstep::trainers
