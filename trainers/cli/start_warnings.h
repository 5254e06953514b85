// Warns users before the first step about the machine and about their flags.
#pragma once

#include "engine/settings/batch_division.h"
#include "trainers/cli/train_run.h"
#include "trainers/config/run_request.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// A collective call; rank 0 prints. `request` is the run's, settled. Requires: the rank's device is
// chosen.
void warn_at_start(const Job& job,
                   const RunRequest& request,
                   const BatchDivision& batch,
                   int64_t dataset_images,
                   const LibraryVersions& libraries,
                   Console& console);

}  // namespace lockstep::trainers
