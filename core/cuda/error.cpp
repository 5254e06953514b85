#include "core/cuda/error.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

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

struct Advice {
  std::string why, hint;
  Remedy remedy = Remedy::kNone;
};

Advice advice_on(cudaError_t status) {
  if (is_sticky(status)) {
    return {"a kernel failed, this op's or an earlier one's; the device is lost to this process",
            "CUDA_LAUNCH_BLOCKING=1, or compute-sanitizer, which name the kernel"};
  }
  switch (status) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return {"this build's kernels are for other devices, or for a newer driver",
              "cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=native, or a newer driver"};
    case cudaErrorMemoryAllocation:
      return {"no more memory of the kind asked for",
              "a smaller batch; nvidia-smi shows who else uses the device",
              Remedy::kSmallerBatch};
    default:
      return {fmt::format("the CUDA runtime returned {}", cudaGetErrorName(status)),
              "nvidia-smi, if it is the device's state; else please report it: a bug in Lockstep"};
  }
}

}  // namespace

CudaError::CudaError(std::string_view op, cudaError_t status, const std::string& why)
    : EnvironmentError(
          fmt::format(
              "[{}] CUDA: {} ({})", op, cudaGetErrorString(status), static_cast<int>(status)),
          is_sticky(status) || why.empty() ? advice_on(status).why : why,
          advice_on(status).hint,
          advice_on(status).remedy),
      status_(status) {}

bool CudaError::sticky() const {
  return is_sticky(status_);
}

bool is_done(cudaError_t query) {
  if (query == cudaErrorNotReady) {
    cudaGetLastError();  // not a failure; libraries that query the last error must not see it
    return false;
  }
  check(query, "event");
  return true;
}

}  // namespace lockstep::cuda
