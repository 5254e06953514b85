// Kernels whose elements do not depend on each other.
#pragma once

#include <algorithm>

#include "core/cuda/launch.h"
#include "kernels/support/cuda/pack.cuh"

namespace lockstep::kernels::cuda {
namespace {

// a / b for element indices. 32-bit division nearly always suffices, and is several times cheaper.
// Requires: 0 <= a, 1 <= b.
__device__ __forceinline__ int64_t divide(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

constexpr int kElementwiseThreads = 256;
constexpr int64_t kElementwiseBlocks = 4096;  // at most; an H100's 132 SMs hold 1,056 at a time

// A body has `static constexpr int kCount`, the elements that a thread takes at once, and template
// <int n> __device__ void run(int64_t first) const, for elements [first, first + n). n is kCount
// for the first `packed` elements, and 1 for the others.
template <class Body>
__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_kernel(const Body body, int64_t count, int64_t packed) {
  const int64_t thread = int64_t{blockIdx.x} * kElementwiseThreads + threadIdx.x;
  const int64_t threads = int64_t{gridDim.x} * kElementwiseThreads;
  for (int64_t i = thread * Body::kCount; i < packed; i += threads * Body::kCount)
    body.template run<Body::kCount>(i);
  for (int64_t i = packed + thread; i < count; i += threads) body.template run<1>(i);
}

// Runs `body` over `count` elements. `pointers`: everything that it accesses by packs. Without
// `packs` it gets only single elements.
template <class Body>
void launch_elementwise(Stream& stream,
                        const char* op,
                        int64_t count,
                        const Body& body,
                        std::initializer_list<const void*> pointers,
                        bool packs = true) {
  const int64_t packed = packs && aligned(pointers) ? count / Body::kCount * Body::kCount : 0;
  const int64_t threads = packed / Body::kCount + (packed == 0 ? count : 0);
  const int64_t blocks =
      std::min(kElementwiseBlocks,
               (std::max(threads, count - packed) + kElementwiseThreads - 1) / kElementwiseThreads);
  lockstep::cuda::launch(stream,
                         op,
                         {static_cast<unsigned>(blocks), kElementwiseThreads},
                         elementwise_kernel<Body>,
                         body,
                         count,
                         packed);
}

}  // namespace
}  // namespace lockstep::kernels::cuda
