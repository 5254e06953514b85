// Waits for another rank: first by polling, later so that others can use the core.
#pragma once

#include <chrono>
#include <thread>

#include <sched.h>

#include "core/pause_core.h"

namespace lockstep::comm {

// One wait. Polls at full speed for some microseconds, then yields the core between polls for half
// a millisecond, then asks for sleep.
class Backoff {
 public:
  // `shared_core`: the awaited rank may need this core; polling at full speed would delay it.
  explicit Backoff(bool shared_core) : polls_left_(shared_core ? 0 : kEagerPolls) {}

  // Spends the time between two polls. Returns false, with nothing done, when the wait has become
  // long: a caller that can be woken should sleep.
  bool poll_or_yield() {
    if (polls_left_ > 0) {
      --polls_left_;
      pause_core();
      return true;
    }
    const Clock::time_point now = Clock::now();
    if (yield_end_ == Clock::time_point()) yield_end_ = now + kYieldTime;
    if (now >= yield_end_) return false;
    sched_yield();
    return true;
  }

  // For callers that cannot be woken: sleeps for a moment instead.
  void pause() {
    if (!poll_or_yield()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr int kEagerPolls = 100;  // of some 50 ns
  static constexpr std::chrono::microseconds kYieldTime{500};

  int polls_left_;
  Clock::time_point yield_end_;  // set when yielding begins
};

}  // namespace lockstep::comm
