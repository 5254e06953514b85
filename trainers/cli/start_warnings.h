// Tells users before the first step what they should know of the machine and of their flags.
#pragma once

#include "trainers/cli/train_run.h"
#include "trainers/config/batch_division.h"
#include "trainers/config/resolved_run.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// A collective call; rank 0 prints. `request`: as the run settled it. Requires: the rank's device
// is chosen.
void warn_at_start(const Job& job,
                   const RunRequest& request,
                   const BatchDivision& batch,
                   const LibraryVersions& libraries,
                   Console& console);

}  // namespace lockstep::trainers
