#include <fmt/core.h>

#include "inspect/plan/convolution_plans.h"
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/cudnn_plan.h"

namespace lockstep::trainers {

namespace cudnn = kernels::cudnn;

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
            ? cudnn::make_plan(target, problem, cudnn::kMaxWorkspace)
            : cudnn::make_plan(target, problem, cudnn::kMaxWorkspace, found->second.engine);
    if (found != planned.end()) call.microseconds = found->second.microseconds;
    call.choice = plan->choice();
    for (const kernels::ConvolutionProblem& form : kernels::fused_forms(problem)) {
      const auto fused = planned.find(form.text());
      if (fused == planned.end() || !fused->second.is_there()) continue;
      cudnn::make_plan(target, form, cudnn::kMaxWorkspace, fused->second.engine);
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

}  // namespace lockstep::trainers
