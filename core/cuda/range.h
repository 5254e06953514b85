// Named spans in a profiler's timeline.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace lockstep::cuda {

// From construction to destruction, on the calling thread.
class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { nvtxRangePop(); }
};

}  // namespace lockstep::cuda
