#include "kernels/support/cudnn/target.h"

#include "core/cuda/device.h"
#include "kernels/support/cudnn/device_properties.h"

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
  api().require(kHasDeviceProperties, "plans for a GPU that is not here");
  Target target;
  target.properties_.emplace(kDeviceProperties);
  target.properties_->set_all(kDevicePropertiesJson, std::span<const char>(properties)).finalize();
  return target;
}

const Target& target_of(Stream& stream) {
  const auto make = [] { return std::make_unique<StreamTarget>(); };
  const Target& target = stream.plan<StreamTarget>({.op = "cudnn_target"}, make).target;
  check(api().set_stream(target.handle(), stream.cuda()), "a stream");
  return target;
}

std::string properties_of_present() {
  api().require(kHasDeviceProperties, "descriptions of a GPU");
  const Target target = Target::present();
  Descriptor properties(kDeviceProperties);
  properties.set(kDevicePropertiesHandle, target.handle()).finalize();
  return properties.text(kDevicePropertiesJson);
}

}  // namespace lockstep::kernels::cudnn
