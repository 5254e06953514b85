// SIGINT, SIGTERM and SIGUSR1 ask for a stop at a step that all ranks agree on; a second one ends
// the process at once.
#pragma once

namespace lockstep::trainers {

void install_stop_handlers();
bool stop_requested();

}  // namespace lockstep::trainers
