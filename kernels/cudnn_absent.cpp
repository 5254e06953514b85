// Stands for cuDNN in a build without it: is_available() is false, so no training calls the rest.
#include "core/error.h"
#include "kernels/conv/conv2d_cudnn.h"

namespace lockstep::kernels::cudnn {
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError("this build has no cuDNN",
                         "no cudnn_graph.h or no libcudnn.so.9 was found when it was "
                         "configured, or LOCKSTEP_CUDNN=OFF",
                         "install cuDNN 9, then cmake --preset release -DLOCKSTEP_CUDNN=ON");
}

}  // namespace

bool is_available() {
  return false;
}
std::string version() {
  refuse();
}

bool fits(const ConvolutionProblem&) {
  return false;
}
bool takes(const ConvolutionProblem&) {
  return false;
}
void keep_plan(Stream&, const ConvolutionProblem&, std::string_view) {
  refuse();
}
size_t workspace_bytes(Stream&, const ConvolutionProblem&) {
  refuse();
}

void conv2d_forward(Stream&, const Shards&, const Conv2dForwardArgs&) {
  refuse();
}
void conv2d_fused_forward(
    Stream&, const Shards&, const Conv2dForwardArgs&, const Tensor&, Tensor&) {
  refuse();
}
void conv2d_backward_data(
    Stream&, const Shards&, const Tensor&, const Tensor&, const Conv2dParams&, Tensor&) {
  refuse();
}
void conv2d_backward_weight(Stream&, const Shards&, const Conv2dBackwardWeightArgs&) {
  refuse();
}
void conv2d_fused_backward_weight(Stream&,
                                  const Shards&,
                                  const Conv2dBackwardWeightArgs&,
                                  const Tensor&) {
  refuse();
}

}  // namespace lockstep::kernels::cudnn
