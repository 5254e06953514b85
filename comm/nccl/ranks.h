// Ranks that communicate through NCCL, each with a GPU of its own.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/nccl/api.h"
#include "core/communicator.h"
#include "core/error.h"
#include "core/function_ref.h"
#include "core/stream.h"

namespace lockstep::comm::nccl {

// An NCCL communicator that never blocks the host: it polls NCCL's state until the deadline. Calls
// that are given to streams run there like other work, and may be recorded in a graph; such graphs
// must have ended before this does, after a failure too.
// Thread safety: none.
class Ranks {
 public:
  // A collective call. Rank 0's id travels over `peers`, which must outlive this, because waits ask
  // them who is gone. The calling thread's device becomes this rank's. Errors: EnvironmentError
  // when NCCL refuses; CommError when the ranks do not all come within `deadline`.
  Ranks(Communicator& peers, std::chrono::milliseconds deadline, const Api& functions = api());
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds deadline() const { return deadline_; }

  // Queues the calls that `body` makes on their streams as one group; they are queued on return.
  // `what` is for errors. Errors, of check() too: CommError, and what was under way ends as it is.
  void group(std::string_view what, FunctionRef<void()> body);
  // Inside group(). Tensors: f32, f16 or bf16, flat, on the device.
  void send(const Tensor& from, int to, Stream& stream);
  void receive(Tensor& to, int from, Stream& stream);
  void broadcast(Tensor& tensor, int root, Stream& stream);  // in place, of any shape and dtype
  void all_reduce(Tensor& values, Stream& stream);           // in place, in NCCL's own order

  // Fails where NCCL knows of a failure by now.
  void check(std::string_view what);
  // Ranks that are known to have ended; none where the peers' transport cannot tell.
  std::vector<int> gone() const { return peers_.gone(); }
  // Fails because these ranks ended before `what` was done.
  [[noreturn]] void lose(std::string_view what, std::span<const int> gone);
  // Fails after waiting that long for `what`.
  [[noreturn]] void give_up(std::string_view what, std::chrono::milliseconds waited);
  // Ends what is under way for an error that is not NCCL's.
  void abandon();
  // The error of the first call that failed, or the reason why the ranks were abandoned. No call
  // may follow.
  const std::optional<CommError>& failure() const { return failure_; }

 private:
  void abort();
  [[noreturn]] void fail(const CommError& error);
  void require(ncclResult_t result, std::string_view what);
  void accept(ncclResult_t result, std::string_view what);  // accepts calls in progress too
  void note(ncclResult_t result);                           // of a call in a group
  ncclResult_t settle(std::string_view what);
  ncclResult_t state() const;
  std::string text_of(ncclResult_t result) const;

  const Api& api_;
  Communicator& peers_;
  const std::chrono::milliseconds deadline_;
  int rank_ = 0;
  int size_ = 1;
  ncclComm_t comm_ = nullptr;
  ncclResult_t in_group_ = ncclSuccess;  // the first failure of a group's calls
  std::optional<CommError> failure_;
  std::jthread aborting_;  // the last member: it ends first
};

}  // namespace lockstep::comm::nccl
