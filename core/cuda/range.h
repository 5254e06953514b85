// Named spans in a profiler's timeline.
#pragma once

namespace lockstep::cuda {

// An NVTX range that lasts from construction to destruction, on the calling thread. It costs next
// to nothing when no profiler is attached. Not inline: NVTX's own code must not be compiled for
// newer processors.
class Range {
 public:
  explicit Range(const char* name);
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range();
};

}  // namespace lockstep::cuda
