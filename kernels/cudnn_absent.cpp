// What cuDNN gives, in a build without it: no convolution is its own.
#include "core/error.h"
#include "kernels/conv2d_cudnn.h"

namespace lockstep::kernels::cudnn {
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError("this build has no cuDNN",
                         "it was configured without cuDNN, or with LOCKSTEP_CUDNN=OFF",
                         "install cuDNN 9, then cmake --preset release -DLOCKSTEP_CUDNN=ON");
}

}  // namespace

bool is_there() {
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

void conv2d_forward(Stream&,
                    const Shards&,
                    const Tensor&,
                    const Tensor&,
                    const Tensor&,
                    const Conv2dParams&,
                    Tensor&) {
  refuse();
}
void conv2d_fused_forward(Stream&,
                          const Shards&,
                          const Tensor&,
                          const Tensor&,
                          const Tensor&,
                          const Conv2dParams&,
                          Tensor&,
                          Tensor&) {
  refuse();
}
void conv2d_backward_data(
    Stream&, const Shards&, const Tensor&, const Tensor&, const Conv2dParams&, Tensor&) {
  refuse();
}
void conv2d_backward_weight(Stream&,
                            const Shards&,
                            const Tensor&,
                            const Tensor&,
                            const Shape&,
                            const Conv2dParams&,
                            Tensor&,
                            Tensor&) {
  refuse();
}
void conv2d_fused_backward_weight(Stream&,
                                  const Shards&,
                                  const Tensor&,
                                  const Tensor&,
                                  const Tensor&,
                                  const Shape&,
                                  const Conv2dParams&,
                                  Tensor&) {
  refuse();
}

}  // namespace lockstep::kernels::cudnn
