// Ranks as threads of this process: what torch.multiprocessing.spawn is to PyTorch.
#pragma once

#include <chrono>
#include <functional>

#include "comm/operation.h"
#include "core/communicator.h"
#include "core/error.h"

#pragma GCC visibility push(default)
namespace lockstep {

// A rank of spawn() failed: "rank 2: WHAT", with the exit code, the reason and the advice of the
// error, which is nested (std::rethrow_if_nested).
class RankError : public Error {
 public:
  RankError(int rank, const Error& error);

  int rank() const { return rank_; }

 private:
  int rank_;
};

// Calls body(communicator) on a thread for each of `ranks` ranks and returns when all are done.
// `body` may be called by several threads at once. When a rank fails, the calls of the others that
// wait for it fail too; the failure that came first is thrown.
// A rank that waits for another for longer than `stall_abort` fails, with CommError.
// Errors: RankError; UsageError for less than one rank, or more than 1024.
//
//   lockstep::spawn(4, [](Communicator& peers) {
//     int64_t sum = peers.rank();
//     peers.all_reduce_sum(std::span(&sum, 1));  // 6 on each rank
//   });
void spawn(int ranks,
           const std::function<void(Communicator& peers)>& body,
           std::chrono::milliseconds stall_abort = comm::kDefaultStallAbort);

}  // namespace lockstep
#pragma GCC visibility pop
