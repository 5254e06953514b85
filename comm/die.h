// Ends a rank whose peers may be gone.
#pragma once

#include <cstdint>

#include "core/error.h"

namespace lockstep::comm {

// The exit code of a failure that another process tells by its number. A number that is no
// failure's counts as kPeerLost: nobody's word makes a process exit with 0.
ExitCode failure_code(int64_t number);

// Flushes the standard streams and exits at once: it runs no destructors, and not MPI_Finalize,
// which would wait for the peers. mpirun then ends the other ranks and returns `code`, which
// is a failure's.
[[noreturn]] void die(ExitCode code);
// Reports `why` and ends the rank with its exit code. Prints it on standard error, unless
// set_error_report() chose another way.
[[noreturn]] void die(const Error& why);
// Sets how die() reports errors. Call it before threads start.
void set_error_report(void (*tell)(const Error& why));

}  // namespace lockstep::comm
