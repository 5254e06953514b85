// Durations as errors print them.
#pragma once

#include <chrono>

namespace lockstep::comm {

inline double seconds_of(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

}  // namespace lockstep::comm
