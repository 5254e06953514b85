// Errors of the CUDA runtime, with the op that got them.
#pragma once

#include <string>
#include <string_view>

#include <driver_types.h>

#include "core/error.h"

namespace lockstep::cuda {

// Exit code 5. A kernel fails asynchronously, after its launch: if the error is sticky, so that the
// process can no longer use the device, the op that is named got the error, but an earlier one may
// have caused it.
class CudaError : public EnvironmentError {
 public:
  // `why` is printed unless the error is sticky; if empty, an explanation of the status is printed.
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

// Says what the query of an event returned: whether the event is done. Errors: CudaError.
bool is_done(cudaError_t query);

}  // namespace lockstep::cuda
