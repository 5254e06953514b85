// Where each rank runs, and its share of its machine: device and threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

struct RankPlace {
  std::string host;
  int64_t pid = 0;
  int local_rank = 0;
  std::string device = {};  // "cpu", "cuda"
  int64_t cores = 0;        // that this process may use; 0: not known
};

RankPlace this_place();  // but rank and device; host "unknown" where the system does not tell

// The places of all ranks, by rank. A collective call.
std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine);

// Replaces the hosts' names by "host0", "host1", ....
void number_hosts(std::span<RankPlace> places);
// From then on, this_place() uses this host name. Call it before threads need it.
void show_host_as(const std::string& name);

// A line per host: "ranks on node7: 0 (local 0, cpu), 1 (local 1, cpu)".
std::vector<std::string> host_lines(std::span<const RankPlace> places);
// A line per rank under a line of headings.
std::vector<std::string> rank_table(std::span<const RankPlace> places);

}  // namespace lockstep::trainers
