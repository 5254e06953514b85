// Replaces the planner's use of cuDNN in a build without it, where kernels::cudnn::version()
// throws.
#include "inspect/plan/convolution_plans.h"
#include "kernels/conv/conv2d_cudnn.h"

namespace lockstep::trainers {

void choose_engines(const std::string&, std::vector<PlannedConvolution>&, const PlannedEngines&) {
  kernels::cudnn::version();
}

std::string describe_present_gpu() {
  return kernels::cudnn::version();
}

}  // namespace lockstep::trainers
