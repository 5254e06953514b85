// Going on together, or not at all.
#pragma once

#include <string>

#include "core/communicator.h"
#include "core/function_ref.h"

namespace lockstep::trainers {

// Runs `body` on every rank and returns when it succeeded on all. Otherwise the lowest rank that
// failed reports its error, and every rank leaves with that error's exit code.
void on_all_ranks(Communicator& ranks, FunctionRef<void()> body);

// rank 0's text on every rank. A collective call.
std::string broadcast_text(Communicator& ranks, const std::string& text);

}  // namespace lockstep::trainers
