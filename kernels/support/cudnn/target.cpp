#include "kernels/support/cudnn/target.h"

#include "core/cuda/device.h"

namespace lockstep::kernels::cudnn {
namespace {

struct StreamTarget final : Plan {
  Target target = Target::present();
};

}  // namespace

Target Target::present() {
  lockstep::cuda::ensure_device();
  cudnnHandle_t made = nullptr;
  check(api().create(&made), "a handle");
  Target target;
  target.handle_ = {made, [](cudnnHandle_t ended) { api().destroy(ended); }};
  return target;
}

Target Target::described_by(const std::string& properties) {
  Target target;
  target.properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  target.properties_
      ->set_all(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(properties))
      .finalize();
  return target;
}

const Target& target_of(Stream& stream) {
  const auto make = [] { return std::make_unique<StreamTarget>(); };
  const Target& target = stream.plan<StreamTarget>({.op = "cudnn_target"}, make).target;
  check(api().set_stream(target.handle(), stream.cuda()), "a stream");
  return target;
}

std::string properties_of_present() {
  const Target target = Target::present();
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_HANDLE, target.handle()).finalize();
  return properties.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

}  // namespace lockstep::kernels::cudnn
