// Going on together, or not at all.
#pragma once

#include "core/communicator.h"
#include "core/function_ref.h"

namespace lockstep::trainers {

// Runs `body` on every rank and returns when it succeeded on all. Otherwise the lowest rank that
// failed reports its error, and every rank leaves with that error's exit code.
void on_all_ranks(Communicator& ranks, FunctionRef<void()> body);

}  // namespace lockstep::trainers
