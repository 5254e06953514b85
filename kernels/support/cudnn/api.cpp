#include "kernels/support/cudnn/api.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::kernels::cudnn {
namespace {

constexpr const char* kWithout = "build with -DLOCKSTEP_CUDNN=OFF";

}  // namespace

Api::Api(const std::string& soname) : library_("cuDNN 9", soname, kWithout) {
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

void Api::require(size_t oldest, std::string_view what) const {
  if (get_version() >= oldest) return;
  throw EnvironmentError(
      "cuDNN is too old",
      fmt::format(
          "it is {}, {} need {} or newer", version(), what, lockstep::cuda::version_text(oldest)),
      fmt::format("a newer cuDNN 9, or {}", kWithout));
}

const Api& api() {
  static const Api opened;
  return opened;
}

}  // namespace lockstep::kernels::cudnn
