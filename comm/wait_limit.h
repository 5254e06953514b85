// Limits the time of one wait for peers.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "comm/operation.h"
#include "comm/wait_clock.h"
#include "core/communicator.h"
#include "core/error.h"
#include "core/function_ref.h"

namespace lockstep::comm {

// The time starts when this is made.
class WaitLimit {
 public:
  using Clock = WaitClock;

  // `deadline`: how long the ranks wait for a peer.
  WaitLimit(std::chrono::milliseconds deadline, const CallContext& context);

  // Looks now and then whether a rank that is missing is stopped, in a part that may take long.
  void look_at(FunctionRef<std::vector<int>()> missing);
  // The time left; zero or less when the limit has passed.
  Clock::duration left() const {
    return is_stopped() ? Clock::duration::zero() : start_ + limit_ - Clock::now();
  }
  // True once: when the part of the run that the ranks are in takes longer than their deadline or,
  // outside of such a part, when the wait takes as long as the warning is set to.
  bool warning_is_due();
  // `missing` may be empty where nobody knows whose part is missing.
  void warn(const Operation& operation, int rank, std::span<const int> missing) const;
  CommError error(const Operation& operation, int rank, std::span<const int> missing) const;

 private:
  bool is_stopped() const { return part_ != nullptr && stopped_for_ >= deadline_; }

  const Clock::time_point start_ = Clock::now();
  const std::chrono::milliseconds deadline_;
  const SlowPart* const part_;
  const StallWarning* const warning_;
  const std::chrono::milliseconds limit_;
  Clock::time_point warn_at_;
  Clock::time_point looked_at_ = start_;
  Clock::duration stopped_for_{};  // the missing ranks
};

}  // namespace lockstep::comm
