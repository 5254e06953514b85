#include "trainers/planner/convolution_plans.h"

#include <algorithm>

#include <fmt/core.h>

#if defined(LOCKSTEP_CUDNN)
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/cudnn_plan.h"
#endif

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

#if defined(LOCKSTEP_CUDNN)
namespace cudnn = kernels::cudnn;

PlannedEngines read_engines(const std::string& plan_file, const GpuCard& card) {
  const PlanFile plans = read_plans(plan_file);
  check_origin(plans, {.cudnn = cudnn::api().version(), .card = device_text(card)}, plan_file);
  return plans.engines;
}

void choose_engines(const std::string& cudnn_properties,
                    std::vector<PlannedConvolution>& calls,
                    const PlannedEngines& planned) {
  const cudnn::Target target = cudnn::Target::described_by(cudnn_properties);
  for (PlannedConvolution& call : calls) {
    if (!cudnn::fits(call.problem)) {
      call.choice = "own kernel";
      continue;
    }
    const kernels::ConvolutionProblem problem = call.problem.padded();
    const auto found = planned.find(problem.text());
    const auto plan =
        found == planned.end()
            ? cudnn::make_plan(target, problem, cudnn::kMostWorkspace)
            : cudnn::make_plan(target, problem, cudnn::kMostWorkspace, found->second.engine);
    if (found != planned.end()) call.microseconds = found->second.microseconds;
    call.choice = plan->choice();
    for (const kernels::ConvolutionProblem& form : kernels::fused_forms(problem)) {
      const auto fused = planned.find(form.text());
      if (fused == planned.end() || !fused->second.is_there()) continue;
      cudnn::make_plan(target, form, cudnn::kMostWorkspace, fused->second.engine);
      call.fused.push_back(fmt::format("{}: {}, {:.1f} us in place of {:.1f}",
                                       form.text(),
                                       fused->second.engine,
                                       fused->second.microseconds,
                                       fused->second.rule_microseconds));
    }
    call.workspace_bytes =
        static_cast<int64_t>(plan->workspace_bytes() + cudnn::staged_bytes(call.problem));
  }
}

std::string describe_present_gpu() {
  return kernels::cudnn::properties_of_present();
}
#else
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError("this build has no cuDNN",
                         "it was configured without cuDNN, or with LOCKSTEP_CUDNN=OFF",
                         "install cuDNN 9, then cmake --preset release -DLOCKSTEP_CUDNN=ON");
}

}  // namespace

PlannedEngines read_engines(const std::string& /*plan_file*/, const GpuCard& /*card*/) {
  refuse();
}

void choose_engines(const std::string& /*cudnn_properties*/,
                    std::vector<PlannedConvolution>& /*calls*/,
                    const PlannedEngines& /*planned*/) {
  refuse();
}

std::string describe_present_gpu() {
  refuse();
}
#endif

}  // namespace lockstep::trainers
