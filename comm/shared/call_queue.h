// The calls of one rank, from entering them to their end.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "comm/operation.h"
#include "comm/shared/control.h"
#include "comm/shared/exchange.h"
#include "comm/shared/host.h"

namespace lockstep::comm {

struct Call {
  Operation operation;
  CallRecord record;
  std::unique_ptr<Exchange> exchange;  // null: over when all ranks have entered
  uint32_t number = 0;                 // among this rank's calls, from 1
  uint32_t first_phase = 0;            // phases of all calls before it
  uint32_t phases_done = 0;
  bool entered_by_all = false;
  bool is_over = false;

  uint32_t phases() const { return exchange ? exchange->phases() : 0; }
};

// All ranks make the same calls in the same order. So each rank knows every call's number and first
// phase on all of them, and two counters per rank (comm/shared/control.h) tell how far it is. A
// call's phases run after those of the calls before it, and calls end in order. Thread safety:
// none. Unusable after an error.
class CallQueue {
 public:
  // A collective call. The host must outlive the queue. So must `context`, which is read when a
  // rank enters a call, waits in it and leaves it.
  CallQueue(SharedHost& host, std::chrono::milliseconds stall_abort, const CallContext& context);

  // Enters a call. Waits when too many are under way. `exchange` may be null.
  std::shared_ptr<const Call> post(const Operation& operation,
                                   const CallRecord& record,
                                   std::unique_ptr<Exchange> exchange);
  // Runs what can run without waiting. Errors: CommError when ranks made different calls.
  void advance();
  // Errors: CommError, also when a peer is gone or the deadline passed.
  void wait(const Call& call);

 private:
  // A peer's counter that has not reached the target that a call needs.
  struct PendingCounter {
    Counter RankState::* counter;
    int rank;  // the first one where everybody is needed
    uint32_t target;
    bool needs_everybody;
  };

  bool run_phases(Call& call);
  // Returns false when `call` may take its next step. Otherwise sets `pending` to the first
  // counter that it waits for.
  bool find_pending(const Call& call, PendingCounter& pending) const;
  bool find_lagging(int rank, PendingCounter& pending) const;
  void compare_records(const Call& call) const;

  void wait_for(const PendingCounter& pending, const Call& call);
  void publish(const PendingCounter& pending);
  void check_alive(const Call& call);
  // The ranks at fault when the counter does not reach its target.
  std::vector<int> culprits_of(const PendingCounter& pending) const;
  // Follows the chain of ranks that hold `rank` up and returns the last one, which may be `rank`
  // itself. A rank is held up by the rank that it waits for or gave up on.
  int root_culprit(int rank) const;
  // The rank that `rank` waits for or gave up on; `rank` itself where there is none.
  int held_up_by(int rank) const;
  void blame(int rank) { state(rank_).blames.store(static_cast<uint32_t>(rank) + 1); }

  RankState& state(int rank) const { return *states_[static_cast<size_t>(rank)]; }

  SharedHost& host_;
  const std::chrono::milliseconds stall_abort_;
  const CallContext& context_;
  const int rank_;
  const bool shares_cores_;
  std::shared_ptr<void> memory_;
  std::vector<RankState*> states_;
  uint32_t posted_;
  uint32_t phase_;       // done by this rank
  uint32_t next_phase_;  // of the next call
  std::deque<std::shared_ptr<Call>> calls_;
};

}  // namespace lockstep::comm
