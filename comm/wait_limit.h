// How long one wait for peers may take.
#pragma once

#include <chrono>
#include <span>

#include "comm/operation.h"
#include "comm/wait_clock.h"
#include "core/communicator.h"
#include "core/error.h"

namespace lockstep::comm {

// Begins when it is made.
class WaitLimit {
 public:
  using Clock = WaitClock;

  // `deadline` is the ranks'.
  WaitLimit(std::chrono::milliseconds deadline, const CallContext& context);

  // Zero or less: it is over.
  Clock::duration left() const { return start_ + limit_ - Clock::now(); }
  // True once: when the part that the ranks are in takes longer than their deadline, or, outside of
  // one, when the wait takes as long as the warning says.
  bool is_to_be_told();
  // `missing` may be empty where nobody knows whose part is missing.
  void tell(const Operation& operation, int rank, std::span<const int> missing) const;
  CommError error(const Operation& operation, int rank, std::span<const int> missing) const;

 private:
  const Clock::time_point start_ = Clock::now();
  const SlowPart* const part_;
  const StallWarning* const warning_;
  const std::chrono::milliseconds limit_;
  Clock::time_point tell_at_;
};

}  // namespace lockstep::comm
