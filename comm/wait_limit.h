// Limits the time of one wait for peers.
#pragma once

#include <chrono>
#include <span>

#include "comm/operation.h"
#include "comm/wait_clock.h"
#include "core/communicator.h"
#include "core/error.h"

namespace lockstep::comm {

// The time starts when this is made.
class WaitLimit {
 public:
  using Clock = WaitClock;

  // `deadline` is the ranks'.
  WaitLimit(std::chrono::milliseconds deadline, const CallContext& context);

  // The time left; zero or less when the limit has passed.
  Clock::duration left() const { return start_ + limit_ - Clock::now(); }
  // True once: when the part of the run that the ranks are in takes longer than their deadline or,
  // outside of such a part, when the wait takes as long as the warning is set to.
  bool warning_is_due();
  // `missing` may be empty where nobody knows whose part is missing.
  void warn(const Operation& operation, int rank, std::span<const int> missing) const;
  CommError error(const Operation& operation, int rank, std::span<const int> missing) const;

 private:
  const Clock::time_point start_ = Clock::now();
  const SlowPart* const part_;
  const StallWarning* const warning_;
  const std::chrono::milliseconds limit_;
  Clock::time_point warn_at_;
};

}  // namespace lockstep::comm
