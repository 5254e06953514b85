// The moments between training steps.
#pragma once

#include <chrono>
#include <vector>

#include "core/cuda/stopwatch.h"
#include "core/stream.h"

namespace lockstep::bench {

// On the CPU by the host's clock, on CUDA in the order of the stream's work, so that no step is
// waited for. Borrows the stream.
class StepClock {
 public:
  explicit StepClock(Stream& stream) : stream_(stream) {}

  void mark();
  // Seconds between one mark and the next, since the last call; waits for the device.
  std::vector<double> take_seconds();

 private:
  Stream& stream_;
  std::vector<std::chrono::steady_clock::time_point> times_;
  std::vector<cuda::Mark> marks_;
};

}  // namespace lockstep::bench
