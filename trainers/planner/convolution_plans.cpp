#include "trainers/planner/convolution_plans.h"

#include <algorithm>

#include "kernels/conv/conv2d_cudnn.h"

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

PlannedEngines read_engines(const std::string& plan_file, const GpuCard& card) {
  const PlanFile plans = read_plans(plan_file);
  check_origin(plans, {.cudnn = kernels::cudnn::version(), .card = device_text(card)}, plan_file);
  return plans.engines;
}

}  // namespace lockstep::trainers
