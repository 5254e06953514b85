// Reductions over the threads of a warp or a block, in an order that the block's size fixes.
#pragma once

#include <cstring>

#include <cuda_runtime.h>

namespace lockstep::kernels::cuda {
namespace {

constexpr int kMaxWarps = 32;  // per block

// Returns the value of the lane whose number differs in the bits of `mask`. Requires: T's size is a
// multiple of 4 bytes.
template <class T>
__device__ __forceinline__ T shuffle_xor(const T& value, int mask) {
  constexpr int kWords = sizeof(T) / 4;
  unsigned words[kWords];
  memcpy(words, static_cast<const void*>(&value), sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_xor_sync(0xffffffffU, words[i], mask);
  T other;
  memcpy(static_cast<void*>(&other), words, sizeof(T));
  return other;
}

// Reduces over the lanes of a warp, all of which must call it and get the result. Requires:
// merge(a, b) and merge(b, a) give the same bits.
template <class T, class Merge>
__device__ __forceinline__ T warp_reduce(T value, Merge merge) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = merge(value, shuffle_xor(value, mask));
  return value;
}

// Reduces over a block of whole warps. `scratch`: shared memory for kMaxWarps values, which may be
// reused after the block's next barrier.
template <class T, class Merge>
__device__ __forceinline__ T block_reduce(T value, T* scratch, Merge merge) {
  value = warp_reduce(value, merge);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  T result = scratch[0];
  for (int warp = 1; warp < static_cast<int>(blockDim.x / 32); ++warp) {
    result = merge(result, scratch[warp]);
  }
  return result;
}

// The sum over a block's threads in core/tree.h's tree; every thread has it. kThreads, the block's
// size: a power of two from 32 on. `scratch`: shared memory for kThreads / 32 values, which may be
// reused after the next barrier.
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
