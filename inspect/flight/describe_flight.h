// The text of lockstep flight.
#pragma once

#include <string>

#include "trainers/flight/read_flight.h"

namespace lockstep::trainers {

// A table of the ranks, and the verdict.
std::string describe_flight(const RunFlight& run);

}  // namespace lockstep::trainers
