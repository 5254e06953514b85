// The text of lockstep flight.
#pragma once

#include <filesystem>
#include <string>

#include "trainers/flight/read_flight.h"

namespace lockstep::trainers {

// A table of the ranks, and the verdict.
std::string describe_flight(const RunFlight& run);

// Returns the lines at the end of a rank's error: the verdict for rank 0, and for all ranks the
// command that shows more. Empty where the run has no records.
std::string last_words(const std::filesystem::path& run, int rank);

}  // namespace lockstep::trainers
