// Advice on flags of a run that go together and are seldom meant.
#pragma once

#include <string>
#include <vector>

#include "trainers/config/batch_division.h"
#include "trainers/config/rank_machine.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

// A warning a line; the run goes on.
std::vector<std::string> run_advice(const RunRequest& request,
                                    const BatchDivision& batch,
                                    const HostShare& host);

}  // namespace lockstep::trainers
