// The functions of oneDNN's files in a build without it.
#include "core/error.h"
#include "kernels/conv/conv2d.h"
#include "kernels/linear/linear.h"
#include "kernels/support/onednn/version.h"

namespace lockstep::kernels {

std::string onednn_version() {
  return "none";
}

std::string onednn_isa() {
  return "none";
}

void require_onednn() {
  throw EnvironmentError(
      "this build does not train on the CPU",
      "it has no oneDNN: none was found when it was configured, or LOCKSTEP_ONEDNN=OFF",
      "scripts/setup.sh and cmake --preset release -DLOCKSTEP_ONEDNN=ON",
      Remedy::kCuda);
}

bool onednn_has_bf16() {
  return false;
}

namespace onednn {

void conv2d_forward(Stream&, const Shards&, const Conv2dForwardArgs&) {
  require_onednn();
}
void conv2d_backward_data(
    Stream&, const Shards&, const Tensor&, const Tensor&, const Conv2dParams&, Tensor&) {
  require_onednn();
}
void conv2d_backward_weight(Stream&, const Shards&, const Conv2dBackwardWeightArgs&) {
  require_onednn();
}

void linear_forward(Stream&, const Shards&, const Tensor&, const Tensor&, const Tensor&, Tensor&) {
  require_onednn();
}
void linear_backward_data(Stream&, const Shards&, const Tensor&, const Tensor&, Tensor&) {
  require_onednn();
}
void linear_backward_weight(
    Stream&, const Shards&, const Tensor&, const Tensor&, Tensor&, Tensor&) {
  require_onednn();
}

}  // namespace onednn
}  // namespace lockstep::kernels
