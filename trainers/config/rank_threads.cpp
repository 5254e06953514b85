#include "trainers/config/rank_threads.h"

#include <algorithm>
#include <cstdlib>

#include "comm/gather.h"
#include "core/thread_pool.h"

namespace lockstep::trainers {

int64_t agreed_threads(const RunConfig& config, const comm::Launch& launch, Communicator& ranks) {
  const char* omp_threads =
      std::getenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  const int64_t mine = threads_per_rank(config, omp_threads, host_share(launch.local_size));
  return std::ranges::min(comm::gather_value(ranks, mine));
}

bool may_spin(const comm::Launch& launch, int64_t threads) {
  return threads * launch.local_size <= usable_cores();
}

}  // namespace lockstep::trainers
