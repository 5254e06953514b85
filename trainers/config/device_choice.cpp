#include "trainers/config/device_choice.h"

#include "core/cuda/device.h"

namespace lockstep::trainers {

Device device_of(const Options& options) {
  const std::string& name = options.text("device");
  const bool is_cuda = name == "cuda" || (name == "auto" && cuda::visible_devices() > 0);
  return is_cuda ? Device::kCuda : Device::kCpu;
}

}  // namespace lockstep::trainers
