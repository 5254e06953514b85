#include "prelu.h"

namespace {

constexpr int kThreads = 256;

int blocks_for(int64_t values) {
  return static_cast<int>((values + kThreads - 1) / kThreads);
}

__global__ void forward(
    const float* x, const float* slope, float* out, int64_t values, int64_t channels) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < values) out[i] = x[i] > 0 ? x[i] : slope[i % channels] * x[i];
}

__global__ void backward_x(PreluGradients of, int64_t values, int64_t channels) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < values)
    of.grad_x[i] = of.x[i] > 0 ? of.grad_out[i] : of.slope[i % channels] * of.grad_out[i];
}

// One block per channel. The order of the sum depends on the shapes alone: there are no atomics.
__global__ void backward_slope(PreluGradients of, int64_t values, int64_t channels) {
  __shared__ float sums[kThreads];
  float sum = 0;
  for (int64_t i = blockIdx.x + threadIdx.x * channels; i < values; i += kThreads * channels) {
    if (of.x[i] <= 0) sum += of.grad_out[i] * of.x[i];
  }
  sums[threadIdx.x] = sum;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) of.grad_slope[blockIdx.x] = sums[0];
}

}  // namespace

void prelu_forward_cuda(CUstream_st* stream,
                        const float* x,
                        const float* slope,
                        float* out,
                        int64_t values,
                        int64_t channels) {
  if (values == 0) return;
  forward<<<blocks_for(values), kThreads, 0, stream>>>(x, slope, out, values, channels);
}

void prelu_backward_cuda(CUstream_st* stream,
                         const PreluGradients& tensors,
                         int64_t values,
                         int64_t channels) {
  if (values > 0)
    backward_x<<<blocks_for(values), kThreads, 0, stream>>>(tensors, values, channels);
  backward_slope<<<static_cast<int>(channels), kThreads, 0, stream>>>(tensors, values, channels);
}
