// Steps that succeed on every rank or count as failed on all.
#pragma once

#include <string>

#include "core/communicator.h"
#include "core/function_ref.h"

namespace lockstep::comm {

// Takes a step on every rank. Empty when it worked on all of them, else what failed on the first
// rank where it did not, the same text on all. A collective call. Errors: those of `ranks`; what
// `step` throws beside lockstep::Error.
std::string attempt(Communicator& ranks, FunctionRef<void()> step);

}  // namespace lockstep::comm
