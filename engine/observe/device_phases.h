// Measures when a GPU ran the phases of traced steps. The host's own spans say when it queued them.
#pragma once

#include <string_view>
#include <vector>

#include "core/cuda/stopwatch.h"
#include "core/stream.h"
#include "core/timeline.h"

namespace lockstep {

// Events in the stream's order time the phases; they are read when all steps are done, so that no
// step waits. Borrows both. Requires: a stream of a GPU. Errors of all functions: CudaError.
class DevicePhases {
 public:
  DevicePhases(Timeline& timeline, Stream& stream) : timeline_(timeline), stream_(stream) {}

  // Waits for the device and compares its clock with the host's.
  void start();
  // Waits for the device and records the phases of the steps since start().
  void finish();

  // Phases within a phase are not timed: a graph of a whole step has one.
  void begin(std::string_view name);
  void end();

 private:
  struct Phase {
    std::string_view name;
    cuda::Mark begin;
    cuda::Mark end;
  };

  Timeline& timeline_;
  Stream& stream_;
  Timeline::Clock::time_point started_;  // when the device passed the mark
  cuda::Mark start_;
  std::vector<Phase> phases_;
  int depth_ = 0;
};

}  // namespace lockstep
