#include "core/cuda/error.h"

#include <cuda_runtime_api.h>

namespace lockstep::cuda {
namespace {

bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorLaunchFailure:
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

}  // namespace

CudaError::CudaError(std::string_view op, cudaError_t status)
    : EnvironmentError(
          fmt::format(
              "[{}] CUDA: {} ({})", op, cudaGetErrorString(status), static_cast<int>(status)),
          is_sticky(status) ? "a kernel failed, this op's or an earlier one's; the device is lost "
                              "to this process"
                            : "",
          is_sticky(status) ? "CUDA_LAUNCH_BLOCKING=1, or compute-sanitizer, which name the kernel"
                            : ""),
      status_(status) {}

bool CudaError::sticky() const {
  return is_sticky(status_);
}

}  // namespace lockstep::cuda
