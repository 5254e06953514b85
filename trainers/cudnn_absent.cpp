// What trainers/ gives of cuDNN, in a build without it. kernels::cudnn::version() throws there.
#include "kernels/conv2d_cudnn.h"
#include "trainers/plans/settle_engines.h"
#include "trainers/tool/convolution_plans.h"

namespace lockstep::trainers {

TuneEngine tune_on(Stream& /*stream*/) {
  return {};
}

void choose_engines(const std::string& /*cudnn_properties*/,
                    std::vector<PlannedConvolution>& /*calls*/,
                    const PlannedEngines& /*planned*/) {
  kernels::cudnn::version();
}

std::string describe_present_gpu() {
  return kernels::cudnn::version();
}

}  // namespace lockstep::trainers
