// The CUDA kernels of main.cpp's layer. Values are stored channels-last: value i belongs to channel
// i % channels.
#pragma once

#include <cstdint>

struct CUstream_st;

// out = x if x > 0, else the channel's slope times x.
void prelu_forward_cuda(CUstream_st* stream,
                        const float* x,
                        const float* slope,
                        float* out,
                        int64_t values,
                        int64_t channels);

struct PreluGradients {
  const float* x;
  const float* slope;     // (channels)
  const float* grad_out;  // as x
  float* grad_x;          // as x
  float* grad_slope;      // (channels): the sum over these values
};
void prelu_backward_cuda(CUstream_st* stream,
                         const PreluGradients& tensors,
                         int64_t values,
                         int64_t channels);
