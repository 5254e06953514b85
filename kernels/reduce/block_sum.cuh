// The sum over a block's threads in core/tree.h's tree.
#pragma once

#include <cuda_runtime.h>

namespace lockstep::kernels::cuda {
namespace {

// Every thread has the sum of all threads' values. kThreads, the block's size: a power of two from
// 32 on. `scratch`: shared memory for kThreads / 32 values, free again at the next barrier.
template <int kThreads, class T>
__device__ __forceinline__ T block_tree_sum(T value, T* scratch) {
  constexpr int kWarps = kThreads / 32;
#pragma unroll
  for (int stride = 1; stride < 32; stride *= 2)
    value += __shfl_xor_sync(0xffffffffU, value, stride);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[threadIdx.x % kWarps];
#pragma unroll
  for (int stride = 1; stride < kWarps; stride *= 2)
    value += __shfl_xor_sync(0xffffffffU, value, stride);
  return value;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
