// Specification of kernels/conv/depthwise_conv2d.h in double. Arrays are in memory order: NHWC, and
// [channel][r][s] for weights.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::reference {

struct DepthwiseConv2dSizes {
  int64_t n = 1, c = 1, h = 1, w = 1, r = 1, s = 1;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;

  int64_t oh() const { return (h + 2 * pad_h - r) / stride_h + 1; }
  int64_t ow() const { return (w + 2 * pad_w - s) / stride_w + 1; }
};

// Calls visit(in, weight, out) with the indices of every product whose input is not padding.
template <class Visit>
void for_each_depthwise_product(const DepthwiseConv2dSizes& z, Visit&& visit) {
  for (int64_t n = 0; n < z.n; ++n)
    for (int64_t c = 0; c < z.c; ++c)
      for (int64_t oy = 0; oy < z.oh(); ++oy)
        for (int64_t ox = 0; ox < z.ow(); ++ox)
          for (int64_t r = 0; r < z.r; ++r)
            for (int64_t s = 0; s < z.s; ++s) {
              const int64_t y = oy * z.stride_h - z.pad_h + r;
              const int64_t x = ox * z.stride_w - z.pad_w + s;
              if (y < 0 || y >= z.h || x < 0 || x >= z.w) continue;
              visit(static_cast<size_t>(((n * z.h + y) * z.w + x) * z.c + c),
                    static_cast<size_t>((c * z.r + r) * z.s + s),
                    static_cast<size_t>(((n * z.oh() + oy) * z.ow() + ox) * z.c + c));
            }
}

inline std::vector<double> depthwise_conv2d_forward(const std::vector<double>& in,
                                                    const std::vector<double>& weight,
                                                    const DepthwiseConv2dSizes& z) {
  std::vector<double> out(static_cast<size_t>(z.n * z.oh() * z.ow() * z.c));
  for_each_depthwise_product(z, [&](size_t i, size_t w, size_t o) { out[o] += in[i] * weight[w]; });
  return out;
}

inline std::vector<double> depthwise_conv2d_backward_data(const std::vector<double>& grad_out,
                                                          const std::vector<double>& weight,
                                                          const DepthwiseConv2dSizes& z) {
  std::vector<double> grad_in(static_cast<size_t>(z.n * z.h * z.w * z.c));
  for_each_depthwise_product(
      z, [&](size_t i, size_t w, size_t o) { grad_in[i] += grad_out[o] * weight[w]; });
  return grad_in;
}

// The gradient over images [first, last).
inline std::vector<double> depthwise_conv2d_backward_weight(const std::vector<double>& in,
                                                            const std::vector<double>& grad_out,
                                                            const DepthwiseConv2dSizes& z,
                                                            int64_t first,
                                                            int64_t last) {
  std::vector<double> grad_weight(static_cast<size_t>(z.c * z.r * z.s));
  const auto in_image = static_cast<size_t>(z.h * z.w * z.c);
  for_each_depthwise_product(z, [&](size_t i, size_t w, size_t o) {
    const auto image = static_cast<int64_t>(i / in_image);
    if (image >= first && image < last) grad_weight[w] += grad_out[o] * in[i];
  });
  return grad_weight;
}

}  // namespace lockstep::reference
