// Division of element numbers.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace lockstep::kernels::cuda {
namespace {

// a / b. 32 bits suffice nearly always, and are several times cheaper.
// Requires: 0 <= a, 1 <= b.
__device__ __forceinline__ int64_t divide(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
