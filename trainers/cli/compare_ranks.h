// The first thing that ranks agree on.
#pragma once

#include <vector>

#include "comm/handshake.h"
#include "trainers/cli/train_run.h"

namespace lockstep::trainers {

// The program and its libraries, as compare_ranks() compares them.
std::vector<comm::HandshakeField> program_fields();

// A collective call: all ranks must run one program with one set of flags on one kind of processor
// and device. Errors: those of comm::handshake().
void compare_ranks(const Job& job);

}  // namespace lockstep::trainers
