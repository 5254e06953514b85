// How a rank waits for another: at first eagerly, later so that others can use the core.
#pragma once

#include <chrono>
#include <thread>

#include <sched.h>

namespace lockstep::comm {

// One wait. Polls at full speed for a fraction of a millisecond, then gives way between polls for
// some milliseconds, then sleeps between them.
class Backoff {
 public:
  // `shared_core`: the awaited rank may need this core; polling at full speed would delay it.
  explicit Backoff(bool shared_core) : polls_(shared_core ? kEagerPolls : 0) {}

  void pause() {
    if (++polls_ <= kEagerPolls) return;
    if (polls_ <= kYieldingPolls) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  static constexpr int kEagerPolls = 2000;
  static constexpr int kYieldingPolls = 20000;

  int polls_;
};

}  // namespace lockstep::comm
