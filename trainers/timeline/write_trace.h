// Writes trace.json, the recorded steps of all ranks.
#pragma once

#include <optional>

#include "core/communicator.h"
#include "engine/observe/step_timeline.h"
#include "trainers/report/console.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers {

// A collective call where there are steps. `directory` is null on all ranks but rank 0. Rank 0 says
// where the file is, or why there is none.
void write_trace(const std::optional<RecordedSteps>& steps,
                 Communicator& ranks,
                 RunDirectory* directory,
                 Console& console);

}  // namespace lockstep::trainers
