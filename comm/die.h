// The end of a rank whose peers may be gone.
#pragma once

#include "core/error.h"

namespace lockstep::comm {

// Flushes the standard streams and leaves at once: no destructors, no MPI_Finalize, which would
// wait for the peers. mpirun then ends the other ranks and returns `code`.
[[noreturn]] void die(ExitCode code);
// Ends the rank with the exit code of `why`, once that is printed, or told as a program wants.
[[noreturn]] void die(const Error& why);
// From now on. Call it before threads start.
void tell_errors_by(void (*tell)(const Error& why));

}  // namespace lockstep::comm
