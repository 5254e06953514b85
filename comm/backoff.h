// How a rank waits for another: at first eagerly, later so that others can use the core.
#pragma once

#include <chrono>
#include <thread>

#include <sched.h>

namespace lockstep::comm {

// One wait. Polls at full speed for some microseconds, then lends the core between polls for half a
// millisecond, then calls for sleep.
class Backoff {
 public:
  // `shared_core`: the awaited rank may need this core; polling at full speed would delay it.
  explicit Backoff(bool shared_core) : polls_left_(shared_core ? 0 : kEagerPolls) {}

  // The time between two polls. False, with nothing done, when the wait has become long: whoever
  // can be woken should sleep.
  bool give_way() {
    if (polls_left_ > 0) {
      --polls_left_;
      __builtin_ia32_pause();
      return true;
    }
    const Clock::time_point now = Clock::now();
    if (end_of_patience_ == Clock::time_point()) end_of_patience_ = now + kPatience;
    if (now >= end_of_patience_) return false;
    sched_yield();
    return true;
  }

  // For whoever cannot be woken: sleeps for a moment instead.
  void pause() {
    if (!give_way()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr int kEagerPolls = 100;  // of some 50 ns
  static constexpr std::chrono::microseconds kPatience{500};

  int polls_left_;
  Clock::time_point end_of_patience_;  // of lending the core; set when that begins
};

}  // namespace lockstep::comm
