// CUDA's libraries in a run: their versions, and cuDNN's engines, where --autotune or --plan-file
// settles them.
#pragma once

#include <span>

#include "core/stream.h"
#include "data/dataset.h"
#include "trainers/config/run_request.h"
#include "trainers/model/models.h"
#include "trainers/planner/settle_engines.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// A collective call. Returns the versions of those libraries that compute here. An error ends all
// ranks: a library that cannot be loaded, versions that differ, or UsageError where engines are to
// be chosen and there are none.
LibraryVersions agreed_cuda_libraries(const RunRequest& request, Communicator& ranks);

// The file from which the run's plans are read and to which, with --autotune, they are written.
std::filesystem::path plan_file_of(const RunRequest& request, const std::string& output_dir);

// Settings that decide which engines a run uses.
struct EngineInputs {
  const RunRequest& request;
  const BatchDivision& batch;
  const ModelOptions& network;
  const data::Dataset& test;
  const LibraryVersions& libraries;  // agreed_cuda_libraries()
  std::filesystem::path plan_file;   // plan_file_of()
};

// Returns the bytes of the largest workspace of these calls, each on one shard, by cuDNN's engines.
// Makes the plans that `stream` lacks; the stream must be on CUDA. 0 without cuDNN. Errors:
// EnvironmentError where cuDNN has no engine.
int64_t largest_workspace(std::span<const kernels::ConvolutionProblem> problems, Stream& stream);

// A collective call. Makes the plans of the run's convolutions: those that --autotune and
// --plan-file ask for, else the rule's. An error ends all ranks, as settle_engines() does.
// Requires: the rank's device is chosen.
SettledEngines settle_run_engines(const EngineInputs& inputs,
                                  Stream& stream,
                                  Communicator& ranks,
                                  Console& console);

// Writes, on rank 0, the plans to the run directory and those that were timed to --plan-file.
// Errors: EnvironmentError.
void keep_plans(const ResolvedRun& run, const SettledEngines& settled);

}  // namespace lockstep::trainers
