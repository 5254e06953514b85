// Requests to stop, from a signal or a time limit.
#pragma once

#include <string>

namespace lockstep::trainers {

// From then on, SIGINT, SIGTERM and SIGUSR1 ask for a stop at a step that all ranks agree on. A
// SIGINT or SIGTERM at least 100 ms after the first request ends the process at once.
void install_stop_handlers();
// From then on, this process asks for a stop once it is this old. Call it before threads start.
void stop_after(double seconds);
bool stop_requested();
std::string stop_cause();  // "on a signal", "at --time-limit 60"; another rank's is a signal's

}  // namespace lockstep::trainers
