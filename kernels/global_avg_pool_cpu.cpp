#include <cstring>

#include "kernels/cpu_loops.h"
#include "kernels/global_avg_pool.h"

namespace lockstep::kernels::LS_CPU {

void global_avg_pool_forward(Stream& stream, const Shards& shards, const Tensor& in, Tensor& out) {
  const int64_t channels = in.shape()[1];
  const int64_t pixels = in.shape()[2] * in.shape()[3];
  const float* from = in.data<float>();
  float* to = out.data<float>();
  for_images(stream, shards, [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      float* __restrict mean = to + n * channels;
      for (int64_t c = 0; c < channels; ++c) mean[c] = 0;
      for (int64_t p = 0; p < pixels; ++p) {
        const float* __restrict pixel = from + (n * pixels + p) * channels;
        for (int64_t c = 0; c < channels; ++c) mean[c] += pixel[c];
      }
      for (int64_t c = 0; c < channels; ++c) mean[c] /= static_cast<float>(pixels);
    }
  });
}

void global_avg_pool_backward(Stream& stream,
                              const Shards& shards,
                              const Tensor& grad_out,
                              Tensor& grad_in) {
  const int64_t channels = grad_in.shape()[1];
  const int64_t pixels = grad_in.shape()[2] * grad_in.shape()[3];
  const float* from = grad_out.data<float>();
  float* to = grad_in.data<float>();
  for_images(stream, shards, [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* __restrict grad = from + n * channels;
      float* __restrict first = to + n * pixels * channels;
      for (int64_t c = 0; c < channels; ++c) first[c] = grad[c] / static_cast<float>(pixels);
      for (int64_t p = 1; p < pixels; ++p) {
        std::memcpy(first + p * channels, first, static_cast<size_t>(channels) * sizeof(float));
      }
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
