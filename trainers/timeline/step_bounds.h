// Names what bound each step of a trace: compute, the loader, the exchange, or a rank that others
// waited for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trainers/timeline/read_trace.h"

namespace lockstep::trainers {

enum class StepBound : uint8_t {
  kCompute,   // what a rank computes, as long as the other ranks take for it
  kLoader,    // images that were not there
  kExchange,  // communication that no rank's work hid
  kSkew,      // what one rank takes more than the others
  kBetween,   // between two steps: checkpoints, evaluations, figures
};
inline constexpr size_t kBounds = 5;

// A step as the rank that took the longest by itself saw it, from the sums of the step before to
// its own: others wait for that rank, and it waits for nothing but the transfer.
struct StepParts {
  int64_t step = 0;
  int rank = 0;                            // that one
  std::array<double, kBounds> parts_us{};  // by StepBound
  double total_us() const;
  double share(StepBound bound) const;  // of the total
  StepBound largest() const;
};

// Requires: each step says when its gradients were summed.
std::vector<StepParts> step_parts(const std::vector<TracedStep>& steps);

struct TraceVerdict {
  StepBound bound = StepBound::kCompute;  // nothing but the arithmetic: no cause stands out
  int rank = -1;                          // of a skew
  std::string abstains;                   // why nothing can be said; empty: something can
};

// Names a cause only where it took a good part of most steps, skew only where it is one rank's.
TraceVerdict verdict_on(const std::vector<StepParts>& steps);

// At most ten lines.
std::string describe_trace(const TraceContents& trace);

}  // namespace lockstep::trainers
