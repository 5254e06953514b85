// Finds what a run should report at its start: an unused GPU, ranks that do not match the GPUs, and
// what makes the run slow.
#pragma once

#include <string>
#include <vector>

#include "core/communicator.h"
#include "trainers/config/run_request.h"
#include "trainers/machine/finding.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

// How rank 0's host assigns its GPUs to ranks.
struct GpuShares {
  int ranks = 0;
  int used = 0;     // GPUs that have a rank
  int visible = 0;  // to rank 0
};
// A collective call. `host`: this rank's. Requires: the rank's device is chosen.
GpuShares gather_gpu_shares(Communicator& ranks, const std::string& host);

// Reports ranks that share a GPU, or GPUs without a rank. `program`: for what to type.
std::vector<Finding> share_findings(const GpuShares& shares, const std::string& program);

// Returns rank 0's findings by the notes above; none on a machine without a GPU. `libraries` are
// those that compute, from agreed_cuda_libraries().
std::vector<Finding> run_findings(const RunRequest& request,
                                  const Options& options,
                                  const LibraryVersions& libraries);

}  // namespace lockstep::trainers
