// A rank's share of its machine: device and threads.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/launch.h"
#include "core/communicator.h"
#include "core/device.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

// Resolves --device on this machine: "auto" means CUDA where a GPU is visible, else the CPU.
Device device_of(const Options& options);

struct HostShare {
  int64_t affinity_cores = 1;  // that this process may use
  int64_t host_cores = 1;
  int64_t ranks_on_host = 1;
};
HostShare host_share(int64_t ranks_on_host);
// --threads (`asked`), else OMP_NUM_THREADS (`omp_threads`, may be null), else this rank's share of
// cores. Errors: UsageError for an OMP_NUM_THREADS that is no number.
int64_t threads_per_rank(const std::optional<int64_t>& asked,
                         const char* omp_threads,
                         const HostShare& host);

// Returns the smallest threads_per_rank() over ranks, so that all divide their images alike. A
// collective call. Errors: UsageError for an OMP_NUM_THREADS that is no number.
int64_t agreed_threads(const std::optional<int64_t>& asked,
                       const comm::Launch& launch,
                       Communicator& ranks);

// Workers may poll only where each has a core to itself.
bool may_spin(const comm::Launch& launch, int64_t threads);

}  // namespace lockstep::trainers
