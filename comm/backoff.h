// How a rank waits for another: at first eagerly, later so that others can use the core.
#pragma once

#include <chrono>
#include <thread>

#include <sched.h>

namespace lockstep::comm {

// One wait. Polls at full speed for some microseconds, then lends the core between polls,
// then calls for sleep.
class Backoff {
 public:
  // `shared_core`: the awaited rank may need this core; polling at full speed would delay it.
  explicit Backoff(bool shared_core) : polls_(shared_core ? kEagerPolls : 0) {}

  // The time between two polls. False, with nothing done, when the wait has become long: whoever
  // can be woken should sleep.
  bool give_way() {
    if (polls_ >= kYieldingPolls) return false;
    if (++polls_ <= kEagerPolls) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
    return true;
  }

  // For whoever cannot be woken: sleeps for a moment instead.
  void pause() {
    if (!give_way()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  static constexpr int kEagerPolls = 300;
  static constexpr int kYieldingPolls = 20000;

  int polls_;
};

}  // namespace lockstep::comm
