// The first thing that ranks agree on.
#pragma once

#include <optional>
#include <vector>

#include "comm/handshake.h"
#include "trainers/cli/train_run.h"
#include "trainers/debug/fault.h"

namespace lockstep::trainers {

// The program and its libraries, as begin_job() compares them.
std::vector<comm::HandshakeField> program_fields();

// A collective call, the job's first. Chooses this rank's GPU; returns what is to go wrong. All
// ranks must run one program with one set of flags on one kind of processor and device. Errors:
// those of comm::handshake(); others end all ranks here.
std::optional<Fault> begin_job(const Job& job);

}  // namespace lockstep::trainers
