#include "kernels/support/cudnn/api.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::kernels::cudnn {
namespace {

constexpr size_t kOldest = 91100;  // plans for a device that is not there

constexpr const char* kWithout = "build with -DLOCKSTEP_CUDNN=OFF";

}  // namespace

Api::Api(const std::string& soname) : library_("cuDNN 9", soname, kWithout) {
  if (get_version() < kOldest) {
    throw EnvironmentError("cuDNN is too old",
                           fmt::format("it is {}, convolutions need {} or newer",
                                       version(),
                                       lockstep::cuda::version_text(kOldest)),
                           fmt::format("a newer cuDNN 9, or {}", kWithout));
  }
  const size_t cuda = get_cudart_version() / 1000;
  if (cuda != CUDART_VERSION / 1000) {
    throw EnvironmentError(
        "cuDNN is for another CUDA",
        fmt::format("it was built for CUDA {}, this program for {}", cuda, CUDART_VERSION / 1000),
        fmt::format("the cuDNN 9 package for CUDA {}", CUDART_VERSION / 1000));
  }
}

std::string Api::version() const {
  return lockstep::cuda::version_text(get_version());
}

const Api& api() {
  static const Api opened;
  return opened;
}

}  // namespace lockstep::kernels::cudnn
