// Threads of each rank of a job.
#pragma once

#include <cstdint>

#include "comm/launch.h"
#include "core/communicator.h"
#include "trainers/config/run_config.h"

namespace lockstep::trainers {

// threads_per_rank(), the least over ranks, so that all cut their images alike. A collective call.
// Errors: UsageError for an OMP_NUM_THREADS that is no number.
int64_t agreed_threads(const RunConfig& config, const comm::Launch& launch, Communicator& ranks);

// Workers may poll only where each has a core to itself.
bool may_spin(const comm::Launch& launch, int64_t threads);

}  // namespace lockstep::trainers
