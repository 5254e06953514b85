// Specification of kernels/conv/conv2d.h in double. Arrays are in memory order: NHWC and KRSC.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::reference {

struct Conv2dSizes {
  int64_t n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int64_t groups = 1;

  int64_t group_channels() const { return c / groups; }
  int64_t group_outputs() const { return k / groups; }
  // The number of products in a value, including those with padding.
  int64_t terms_of_out() const { return group_channels() * r * s; }
  int64_t terms_of_in() const { return group_outputs() * r * s; }
  int64_t oh() const { return (h + 2 * pad_h - r) / stride_h + 1; }
  int64_t ow() const { return (w + 2 * pad_w - s) / stride_w + 1; }
};

// Calls visit(in, weight, out) with the indices of every product whose input is not padding.
template <class Visit>
void for_each_conv2d_product(const Conv2dSizes& z, Visit&& visit) {
  for (int64_t n = 0; n < z.n; ++n)
    for (int64_t oy = 0; oy < z.oh(); ++oy)
      for (int64_t ox = 0; ox < z.ow(); ++ox)
        for (int64_t k = 0; k < z.k; ++k)
          for (int64_t r = 0; r < z.r; ++r)
            for (int64_t s = 0; s < z.s; ++s) {
              const int64_t y = oy * z.stride_h - z.pad_h + r;
              const int64_t x = ox * z.stride_w - z.pad_w + s;
              if (y < 0 || y >= z.h || x < 0 || x >= z.w) continue;
              const int64_t first = k / z.group_outputs() * z.group_channels();
              for (int64_t c = 0; c < z.group_channels(); ++c) {
                visit(static_cast<size_t>(((n * z.h + y) * z.w + x) * z.c + first + c),
                      static_cast<size_t>(((k * z.r + r) * z.s + s) * z.group_channels() + c),
                      static_cast<size_t>(((n * z.oh() + oy) * z.ow() + ox) * z.k + k));
              }
            }
}

// `bias`: K values, or empty.
inline std::vector<double> conv2d_forward(const std::vector<double>& in,
                                          const std::vector<double>& weight,
                                          const std::vector<double>& bias,
                                          const Conv2dSizes& z) {
  std::vector<double> out(static_cast<size_t>(z.n * z.oh() * z.ow() * z.k));
  if (!bias.empty()) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = bias[i % bias.size()];
  }
  for_each_conv2d_product(z, [&](size_t i, size_t w, size_t o) { out[o] += in[i] * weight[w]; });
  return out;
}

inline std::vector<double> conv2d_backward_data(const std::vector<double>& grad_out,
                                                const std::vector<double>& weight,
                                                const Conv2dSizes& z) {
  std::vector<double> grad_in(static_cast<size_t>(z.n * z.h * z.w * z.c));
  for_each_conv2d_product(
      z, [&](size_t i, size_t w, size_t o) { grad_in[i] += grad_out[o] * weight[w]; });
  return grad_in;
}

inline std::vector<double> conv2d_backward_weight(const std::vector<double>& in,
                                                  const std::vector<double>& grad_out,
                                                  const Conv2dSizes& z) {
  std::vector<double> grad_weight(static_cast<size_t>(z.k * z.terms_of_out()));
  for_each_conv2d_product(
      z, [&](size_t i, size_t w, size_t o) { grad_weight[w] += grad_out[o] * in[i]; });
  return grad_weight;
}

inline std::vector<double> conv2d_backward_bias(const std::vector<double>& grad_out, int64_t k) {
  std::vector<double> grad_bias(static_cast<size_t>(k));
  for (size_t i = 0; i < grad_out.size(); ++i) grad_bias[i % grad_bias.size()] += grad_out[i];
  return grad_bias;
}

}  // namespace lockstep::reference
