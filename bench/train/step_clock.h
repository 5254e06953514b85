// Times training steps.
#pragma once

#include <chrono>
#include <vector>

#include "core/cuda/stopwatch.h"
#include "core/stream.h"

namespace lockstep::bench {

// Marks the boundaries of steps: on the CPU by the host's clock, on CUDA by marks on the stream, so
// that a mark does not wait for the step. Borrows the stream.
class StepClock {
 public:
  explicit StepClock(Stream& stream) : stream_(stream) {}

  void mark();
  // Returns the seconds between successive marks since the last call. Waits for the device.
  std::vector<double> take_seconds();

 private:
  Stream& stream_;
  std::vector<std::chrono::steady_clock::time_point> times_;
  std::vector<cuda::Mark> marks_;
};

}  // namespace lockstep::bench
