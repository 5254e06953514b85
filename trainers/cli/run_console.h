// The console of a run, as its flags ask for it.
#pragma once

#include <string>
#include <vector>

#include "trainers/cli/train_run.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

Console make_console(const Job& job);

// Prints lines instead of running. All ranks return after rank 0 has printed.
ExitCode print_all(const std::vector<std::string>& lines, Console& console, Communicator& ranks);

}  // namespace lockstep::trainers
