#include "kernels/cpu_loops.h"
#include "kernels/subsample_pad.h"

namespace lockstep::kernels::LS_CPU {

void subsample_pad_forward(
    Stream& stream, const Shards& shards, const Tensor& in, int stride, Tensor& out) {
  const Shape& wide = in.shape();
  const Shape& narrow = out.shape();
  const int64_t pad = (narrow[1] - wide[1]) / 2;
  const float* from = in.data<float>();
  float* to = out.data<float>();
  for_images(stream, shards, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * narrow[2]; row < end * narrow[2]; ++row) {
      const int64_t in_row = row / narrow[2] * wide[2] + row % narrow[2] * stride;
      for (int64_t x = 0; x < narrow[3]; ++x) {
        const float* values = from + (in_row * wide[3] + x * stride) * wide[1];
        float* pixel = to + (row * narrow[3] + x) * narrow[1];
        std::fill_n(pixel, pad, 0.0F);
        std::copy_n(values, wide[1], pixel + pad);
        std::fill_n(pixel + pad + wide[1], pad, 0.0F);
      }
    }
  });
}

void subsample_pad_backward(
    Stream& stream, const Shards& shards, const Tensor& grad_out, int stride, Tensor& grad_in) {
  const Shape& wide = grad_in.shape();
  const Shape& narrow = grad_out.shape();
  const int64_t pad = (narrow[1] - wide[1]) / 2;
  const float* from = grad_out.data<float>();
  float* to = grad_in.data<float>();
  for_images(stream, shards, [&](int64_t begin, int64_t end) {
    std::fill(to + begin * wide.stride0(), to + end * wide.stride0(), 0.0F);
    for (int64_t row = begin * narrow[2]; row < end * narrow[2]; ++row) {
      const int64_t in_row = row / narrow[2] * wide[2] + row % narrow[2] * stride;
      for (int64_t x = 0; x < narrow[3]; ++x) {
        const float* values = from + (row * narrow[3] + x) * narrow[1] + pad;
        std::copy_n(values, wide[1], to + (in_row * wide[3] + x * stride) * wide[1]);
      }
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
