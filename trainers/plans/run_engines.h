// CUDA's libraries in a run: their versions, and cuDNN's engines, where --autotune or --plan-file
// settles them.
#pragma once

#include "core/stream.h"
#include "data/dataset.h"
#include "trainers/config/run_config.h"
#include "trainers/loop/models.h"
#include "trainers/output/console.h"
#include "trainers/plans/settle_engines.h"

namespace lockstep::trainers {

// A collective call. Settles config.cuda_libraries. An error ends all ranks: a library that cannot
// be loaded, versions that differ; UsageError where engines are to be chosen and there are none.
void compare_cuda_libraries(RunConfig& config, Communicator& ranks);

// Where the run's plans are read and, with --autotune, written.
std::filesystem::path plan_file_of(const RunConfig& config);

// A collective call. Makes the plans of `stream` that --autotune and --plan-file ask for, and
// settles config.plan_choices. An error ends all ranks, as settle_engines() does. Requires: a
// resolved config, compare_cuda_libraries(); the rank's device is chosen.
SettledEngines settle_run_engines(RunConfig& config,
                                  const ModelOptions& network,
                                  const data::Dataset& test,
                                  Stream& stream,
                                  Communicator& ranks,
                                  Console& console);

// Rank 0's: leaves the plans in the run directory, and in --plan-file what was timed. Errors:
// EnvironmentError.
void keep_plans(const RunConfig& config, const SettledEngines& settled);

}  // namespace lockstep::trainers
