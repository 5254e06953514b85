// The steps that a timeline shows.
#pragma once

#include <cstdint>

namespace lockstep {

// From 1, both ends included.
struct TracedSteps {
  int64_t first = 0;
  int64_t last = 0;
};

}  // namespace lockstep
