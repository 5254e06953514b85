// Measures how far the clocks of the ranks are apart.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/communicator.h"
#include "core/function_ref.h"

namespace lockstep::comm {

// A rank's clock minus rank 0's, in nanoseconds: the truth is within `error` of `offset`.
struct ClockOffset {
  std::chrono::nanoseconds at{};  // on the rank's own clock, when it was measured
  double offset = 0;
  double error = 0;
};

// Returns an offset for each rank, by rank; rank 0's is exact. No rank leaves a barrier before the
// last one has entered it, so each of many barriers bounds each clock from both sides, and the
// tightest bounds count, whatever a barrier costs. A collective call. `now`: the rank's clock.
std::vector<ClockOffset> measure_clock_offsets(Communicator& ranks,
                                               FunctionRef<std::chrono::nanoseconds()> now);

// Measures the offsets of the steady clock.
std::vector<ClockOffset> measure_clock_offsets(Communicator& ranks);

// Maps a rank's clock to rank 0's. The clock was measured twice, and is taken to drift evenly in
// between.
class ClockMap {
 public:
  ClockMap() = default;  // rank 0's clock
  ClockMap(const ClockOffset& first, const ClockOffset& last) : first_(first), last_(last) {}

  // A time on rank 0's clock, in nanoseconds.
  double on_rank0(std::chrono::nanoseconds time) const;
  double error() const { return std::max(first_.error, last_.error); }  // in nanoseconds

 private:
  ClockOffset first_;
  ClockOffset last_;
};

}  // namespace lockstep::comm
