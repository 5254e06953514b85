#include "comm/spawn.h"

#include <exception>
#include <new>

#include <fmt/core.h>

#include "comm/shared/thread_ranks.h"
#include "core/thread_pool.h"

namespace lockstep {

RankError::RankError(int rank, const Error& error)
    : Error(error.code(),
            fmt::format("rank {}: {}", rank, error.what()),
            error.why(),
            error.hint(),
            error.remedy()),
      rank_(rank) {}

void spawn(int ranks,
           const std::function<void(Communicator&)>& body,
           std::chrono::milliseconds stall_abort) {
  if (ranks < 1) {
    throw UsageError(fmt::format("{} ranks cannot be started", ranks),
                     "a job has at least one rank");
  }
  if (ranks > kMaxThreads) {
    throw UsageError(fmt::format("{} ranks cannot be started", ranks),
                     "they are threads of one process",
                     fmt::format("at most {} ranks", kMaxThreads));
  }
  const auto run_rank = [&](Communicator& peers) {
    try {
      body(peers);
    } catch (const Error& error) {
      std::throw_with_nested(RankError(peers.rank(), error));
    } catch (const std::bad_alloc&) {
      std::throw_with_nested(
          RankError(peers.rank(),
                    EnvironmentError("out of memory",
                                     "the system gave the rank no more",
                                     "a smaller batch or fewer ranks on this host",
                                     Remedy::kSmallerBatch)));
    } catch (const std::exception& error) {
      std::throw_with_nested(RankError(peers.rank(), InternalError(error.what())));
    }
  };
  comm::spawn_ranks(ranks, run_rank, stall_abort);
}

}  // namespace lockstep
