// Checks, first of all, that the ranks agree on what they run.
#pragma once

#include <optional>
#include <vector>

#include "comm/handshake.h"
#include "engine/observe/fault.h"
#include "trainers/cli/train_run.h"

namespace lockstep::trainers {

// The program and its libraries, as fields that begin_job() compares.
std::vector<comm::HandshakeField> program_fields();

// A collective call, the job's first. Chooses this rank's GPU and returns the fault to inject, if
// any. All ranks must run one program with one set of flags on one kind of processor and device.
// Errors: those of comm::handshake(); others end all ranks here.
std::optional<Fault> begin_job(const Job& job);

}  // namespace lockstep::trainers
