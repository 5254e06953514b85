// `lockstep ranks`: shows which ranks there are, and where they run.
#pragma once

#include <chrono>

#include "comm/launch.h"

namespace lockstep::trainers {

// Connects the ranks as training does; rank 0 prints a table. Returns the exit code. An error after
// the ranks have met ends the process. Errors: those of comm::read_launch() and comm::connect().
int run_ranks(const comm::LaunchOptions& options, std::chrono::seconds rendezvous_timeout);

}  // namespace lockstep::trainers
