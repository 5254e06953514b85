#include "kernels/support/cublaslt/api.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::kernels::cublaslt {
namespace {

constexpr int kCudaMajor = CUDART_VERSION / 1000;
constexpr size_t kOldest = 120400;  // version in the oldest CUDA that can build this program

constexpr const char* kWithout = "build with -DLOCKSTEP_CUBLASLT=OFF";

}  // namespace

std::string soname() {
  return fmt::format("libcublasLt.so.{}", kCudaMajor);
}

Api::Api(const std::string& name) : library_("cuBLASLt", name, kWithout) {
  if (get_version() >= kOldest) return;
  throw EnvironmentError(
      "cuBLASLt is too old",
      fmt::format("it is {}, matrix products need {} or newer",
                  version(),
                  lockstep::cuda::version_text(kOldest)),
      fmt::format("the cuBLAS of a newer CUDA {}, as in Python's package nvidia-cublas; or {}",
                  kCudaMajor,
                  kWithout));
}

std::string Api::version() const {
  return lockstep::cuda::version_text(get_version());
}

const Api& api() {
  static const Api opened;
  return opened;
}

}  // namespace lockstep::kernels::cublaslt
