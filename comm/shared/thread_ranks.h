// Ranks as threads of one process, for spawn() and --parallel dp.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include "comm/operation.h"
#include "comm/shared/host.h"
#include "core/communicator.h"

namespace lockstep::comm {

// The state that the threads share. Thread safety: all functions may be called from any thread.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size) : left_(static_cast<size_t>(size)) {}

  int size() const { return static_cast<int>(left_.size()); }
  // A rank's `index`-th segment.
  Segment segment(size_t index, size_t bytes_per_rank);
  void leave(int rank) { left_[static_cast<size_t>(rank)].store(true); }
  bool has_left(int rank) const { return left_[static_cast<size_t>(rank)].load(); }

 private:
  struct Shared {
    Segment segment;
    int takers = 0;
  };

  std::mutex mutex_;
  std::vector<Shared> segments_;
  std::vector<std::atomic<bool>> left_;
};

class ThreadHost : public SharedHost {
 public:
  // The group must outlive this.
  ThreadHost(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  bool shares_cores() const override;
  Segment allocate(size_t bytes_per_rank, const Operation& operation) override;
  bool is_gone(int rank) override { return group_.has_left(rank); }

 private:
  ThreadGroup& group_;
  const int rank_;
  size_t allocated_ = 0;
};

// Calls body(communicator) on `ranks` threads and returns when all are done. The ranks share memory
// by the protocol of comm/shared/, as processes of one host do. A rank that throws or returns makes
// the others' waits for it fail at once; the error that came first in time is rethrown.
// Errors: CommError when a rank waits for another for longer than `stall_abort`.
void spawn_ranks(int ranks,
                 const std::function<void(Communicator& peers)>& body,
                 std::chrono::milliseconds stall_abort = kDefaultStallAbort);

}  // namespace lockstep::comm
