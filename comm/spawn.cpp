#include "comm/spawn.h"

#include <exception>

#include <fmt/core.h>

#include "comm/shared/thread_ranks.h"

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
  const auto run_rank = [&](Communicator& peers) {
    try {
      body(peers);
    } catch (const Error& error) {
      std::throw_with_nested(RankError(peers.rank(), error));
    } catch (const std::exception& error) {
      std::throw_with_nested(RankError(peers.rank(), InternalError(error.what())));
    }
  };
  comm::spawn_ranks(ranks, run_rank, stall_abort);
}

}  // namespace lockstep
