// Names what limited each step of a trace: compute, the loader, the exchange, or a rank that the
// others waited for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trainers/timeline/read_trace.h"

namespace lockstep::trainers {

enum class StepBound : uint8_t {
  kCompute,   // a rank's work, for as long as the other ranks take for theirs
  kLoader,    // waits for images
  kExchange,  // communication that no rank's work hid
  kSkew,      // the time that one rank takes beyond the others
  kBetween,   // between two steps: checkpoints, evaluations, figures
};
inline constexpr size_t kBounds = 5;

// A step as seen by the rank with the longest own time, from the sums of the previous step to its
// own. The others wait for that rank, which itself waits for nothing but the transfer.
struct StepParts {
  int64_t step = 0;
  int rank = 0;                            // the one with the longest own time
  std::array<double, kBounds> parts_us{};  // by StepBound
  double total_us() const;
  double share(StepBound bound) const;  // of the total
  StepBound largest() const;
};

// Requires: each step says when its gradients were summed.
std::vector<StepParts> step_parts(const std::vector<TracedStep>& steps);

struct TraceVerdict {
  StepBound bound = StepBound::kCompute;  // compute: no other cause stands out
  int rank = -1;                          // of a skew
  std::string abstains;                   // why there is no verdict; empty: there is one
};

// Names a cause only where it took a good part of most steps, skew only where it is one rank's.
TraceVerdict verdict_on(const std::vector<StepParts>& steps);

// At most ten lines.
std::string describe_trace(const TraceContents& trace);

}  // namespace lockstep::trainers
