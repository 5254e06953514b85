// The first thing that ranks agree on.
#pragma once

#include "trainers/cli/train_run.h"

namespace lockstep::trainers {

// A collective call: all ranks must run one program with one set of flags on one kind of processor
// and device. Errors: those of comm::handshake().
void compare_ranks(const Job& job);

}  // namespace lockstep::trainers
