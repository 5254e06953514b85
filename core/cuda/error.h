// Failures of the CUDA runtime, with the op that met them.
#pragma once

#include <string>
#include <string_view>

#include <driver_types.h>

#include "core/error.h"

namespace lockstep::cuda {

// Exit code 5. A kernel fails after its launch: where the device is lost for good (`sticky`), the
// op named met the failure and an earlier one may have caused it.
class CudaError : public EnvironmentError {
 public:
  // `why` is said where the status does not explain itself.
  CudaError(std::string_view op, cudaError_t status, const std::string& why = {});

  cudaError_t status() const { return status_; }
  bool sticky() const;

 private:
  cudaError_t status_;
};

// Errors: CudaError unless status is cudaSuccess.
inline void check(cudaError_t status, std::string_view op) {
  if (status != cudaSuccess) [[unlikely]]
    throw CudaError(op, status);
}

}  // namespace lockstep::cuda
