#include "trainers/config/rank_machine.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>
#include <sched.h>

#include "comm/gather.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/words.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

Device device_of(const Options& options) {
  const std::string& name = options.text("device");
  const bool is_cuda = name == "cuda" || (name == "auto" && cuda::visible_devices() > 0);
  return is_cuda ? Device::kCuda : Device::kCpu;
}

HostShare host_share(int64_t ranks_on_host) {
  HostShare host;
  host.host_cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  host.affinity_cores = host.host_cores;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) host.affinity_cores = CPU_COUNT(&mask);
  host.ranks_on_host = ranks_on_host;
  return host;
}

int64_t threads_per_rank(const std::optional<int64_t>& asked,
                         const char* omp_threads,
                         const HostShare& host) {
  if (asked) return *asked;
  if (omp_threads != nullptr && *omp_threads != '\0') {
    const std::string_view outermost = split_words(omp_threads, ',').front();
    const auto threads = parse_int(outermost);
    if (!threads || *threads < 1 || *threads > kMaxThreads) {
      throw UsageError(
          fmt::format("bad value: OMP_NUM_THREADS={}", omp_threads),
          fmt::format("it sets the threads per rank, a whole number from 1 to {}", kMaxThreads),
          "unset OMP_NUM_THREADS, or --threads N");
    }
    return *threads;
  }
  return std::max<int64_t>(1, std::min(host.affinity_cores, host.host_cores / host.ranks_on_host));
}

int64_t agreed_threads(const std::optional<int64_t>& asked,
                       const comm::Launch& launch,
                       Communicator& ranks) {
  const char* omp_threads =
      std::getenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  const int64_t mine = threads_per_rank(asked, omp_threads, host_share(launch.local_size));
  return std::ranges::min(comm::gather_value(ranks, mine));
}

bool may_spin(const comm::Launch& launch, int64_t threads) {
  return threads * launch.local_size <= usable_cores();
}

}  // namespace lockstep::trainers
