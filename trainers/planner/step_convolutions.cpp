#include "trainers/planner/step_convolutions.h"

#include <algorithm>

namespace lockstep::trainers {

std::vector<PlannedConvolution> convolutions_of(const DryStep& step) {
  std::vector<PlannedConvolution> found;
  for (const LedgerEntry& entry : step.ledger) {
    if (entry.plan.op == nullptr) continue;
    const auto same = std::ranges::find(
        found, entry.plan, [](const PlannedConvolution& known) { return known.problem.key(); });
    if (same == found.end()) {
      found.push_back({.problem = kernels::ConvolutionProblem::of(entry.plan),
                       .calls = 1,
                       .flops = entry.flops,
                       .bytes = entry.bytes});
    } else {
      ++same->calls;
    }
  }
  return found;
}

}  // namespace lockstep::trainers
