// lockstep watch: follows a run in the terminal.
#pragma once

#include <string>

namespace lockstep::trainers {

// Shows the run in this directory until it has ended or a signal comes, and leaves the last picture
// on standard output. With `once`, or where standard output is no terminal, it prints one picture.
// Reads only files of the run. Returns the exit code. Errors: those of view_run().
int run_watch(const std::string& directory, bool once);

}  // namespace lockstep::trainers
