// Kernels that tools/cuda_resources.py must refuse, one rule each, and a sound one. Never run.
#include <cuda_runtime.h>

namespace {

__global__ void __launch_bounds__(256) local_array(const int* in, uint4* out) {
  int values[64];
  for (int i = 0; i < 64; ++i) values[(i * 7 + in[64]) & 63] = in[i];
  out[threadIdx.x].x = static_cast<unsigned>(values[in[65] & 63]);
}

__global__ void __launch_bounds__(1024, 2) spilled_registers(const float* in, float* out) {
  float values[40];
#pragma unroll
  for (int i = 0; i < 40; ++i) values[i] = in[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 40; ++i) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 40; ++j) sum += values[j] * values[(i * j) % 40];
    out[i * 1024 + threadIdx.x] = sum;
  }
}

__global__ void __launch_bounds__(256) float_atomic(float* sum) {
  atomicAdd(sum, 1.0F);
}

__global__ void __launch_bounds__(256) float_atomic_in_shared(const float* in, float* out) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[threadIdx.x]);
  __syncthreads();
  *out = sum;
}

__global__ void no_launch_bounds(int* any) {
  atomicOr(any, 1);
}

__global__ void __launch_bounds__(128) few_warps(const uint4* in, uint4* out) {
  __shared__ uint4 values[3000];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[in[0].x];
}

__global__ void __launch_bounds__(256) narrow_accesses(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

__global__ void __launch_bounds__(256) sound(const uint4* in, uint4* out, int* any) {
  out[threadIdx.x] = in[threadIdx.x];
  atomicOr(any, 1);
}

}  // namespace

// What keeps them in the object file.
extern const void* const kBrokenKernels[];
const void* const kBrokenKernels[] = {
    reinterpret_cast<const void*>(local_array),
    reinterpret_cast<const void*>(spilled_registers),
    reinterpret_cast<const void*>(float_atomic),
    reinterpret_cast<const void*>(float_atomic_in_shared),
    reinterpret_cast<const void*>(no_launch_bounds),
    reinterpret_cast<const void*>(few_warps),
    reinterpret_cast<const void*>(narrow_accesses),
    reinterpret_cast<const void*>(sound),
};
