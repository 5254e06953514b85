#include "trainers/tool/convolution_plans.h"

#include <algorithm>

#if defined(LOCKSTEP_CUDNN)
#include "kernels/conv2d_cudnn.h"
#include "kernels/cudnn/plan.h"
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
void choose_engines(const std::string& cudnn_properties, std::vector<PlannedConvolution>& calls) {
  using namespace kernels::cudnn;
  const Target target = Target::described_by(cudnn_properties);
  for (PlannedConvolution& call : calls) {
    if (!fits(call.problem)) {
      call.choice = "own kernel";
      continue;
    }
    const auto plan = make_plan(target, call.problem.padded(), kMostWorkspace);
    call.choice = plan->choice();
    call.workspace_bytes =
        static_cast<int64_t>(plan->workspace_bytes() + staged_bytes(call.problem));
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

void choose_engines(const std::string& /*cudnn_properties*/,
                    std::vector<PlannedConvolution>& /*calls*/) {
  refuse();
}

std::string describe_present_gpu() {
  refuse();
}
#endif

}  // namespace lockstep::trainers
