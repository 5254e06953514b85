// Finds the state of the process that wrote a flight record.
#pragma once

#include "trainers/report/process.h"

namespace lockstep::trainers {

// letter_of() the process that holds the lock on the open file. kProcessGone where nobody holds it.
// `pid` is 0 for a process of another host.
char process_of(int fd, int pid);

}  // namespace lockstep::trainers
