// Replaces the planner's use of cuDNN in a build without it, where kernels::cudnn::version()
// throws.
#include "kernels/conv/conv2d_cudnn.h"
#include "trainers/planner/convolution_plans.h"
#include "trainers/planner/settle_engines.h"

namespace lockstep::trainers {

TuneEngine make_tuner(Stream&) {
  return {};
}

void choose_engines(const std::string&, std::vector<PlannedConvolution>&, const PlannedEngines&) {
  kernels::cudnn::version();
}

std::string describe_present_gpu() {
  return kernels::cudnn::version();
}

}  // namespace lockstep::trainers
