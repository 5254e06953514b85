// Finds the state of the process that wrote a flight record.
#pragma once

#include "trainers/report/process.h"

namespace lockstep::trainers {

inline constexpr char kProcessGone = '-';

// letter_of() the process that holds the lock on the open file. kProcessGone where nobody holds it.
char process_of(int fd, int pid);

}  // namespace lockstep::trainers
