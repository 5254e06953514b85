#include "trainers/config/rank_threads.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/thread_pool.h"

namespace lockstep::trainers {

int64_t agreed_threads(const RunConfig& config, const comm::Launch& launch, Communicator& ranks) {
  const char* omp_threads =
      std::getenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  const int64_t mine = threads_per_rank(config, omp_threads, host_share(launch.local_size));
  std::vector<int64_t> all(static_cast<size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return *std::ranges::min_element(all);
}

bool may_spin(const comm::Launch& launch, int64_t threads) {
  return threads * launch.local_size <= usable_cores();
}

}  // namespace lockstep::trainers
