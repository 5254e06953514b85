// Specification of kernels/pool/max_pool2d.h in double. Arrays are NHWC.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep::reference {

struct MaxPool2dShape {
  int64_t n, c, h, w;
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;

  int64_t out_h() const { return (h + 2 * pad_h - kernel_h) / stride_h + 1; }
  int64_t out_w() const { return (w + 2 * pad_w - kernel_w) / stride_w + 1; }
  size_t in_index(int64_t i, int64_t channel, int64_t y, int64_t x) const {
    return static_cast<size_t>(((i * h + y) * w + x) * c + channel);
  }
  size_t out_index(int64_t i, int64_t channel, int64_t y, int64_t x) const {
    return static_cast<size_t>(((i * out_h() + y) * out_w() + x) * c + channel);
  }
  size_t in_size() const { return static_cast<size_t>(n * c * h * w); }
  size_t out_size() const { return static_cast<size_t>(n * c * out_h() * out_w()); }
};

struct MaxPool2dResult {
  std::vector<double> out;
  std::vector<uint8_t> winner;
};

// Calls body(i, channel, oy, ox) for every output, in row-major order of (N,C,H,W).
template <class Body>
void for_each_output(const MaxPool2dShape& s, Body&& body) {
  for (int64_t i = 0; i < s.n; ++i) {
    for (int64_t channel = 0; channel < s.c; ++channel) {
      for (int64_t oy = 0; oy < s.out_h(); ++oy) {
        for (int64_t ox = 0; ox < s.out_w(); ++ox) body(i, channel, oy, ox);
      }
    }
  }
}

inline MaxPool2dResult max_pool2d_forward(const MaxPool2dShape& s, const std::vector<double>& in) {
  MaxPool2dResult result{.out = std::vector<double>(s.out_size()),
                         .winner = std::vector<uint8_t>(s.out_size())};
  for_each_output(s, [&](int64_t i, int64_t channel, int64_t oy, int64_t ox) {
    double best = 0;
    int64_t winner = -1;
    for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t y = oy * s.stride_h - s.pad_h + ky;
        const int64_t x = ox * s.stride_w - s.pad_w + kx;
        if (y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
        const double value = in[s.in_index(i, channel, y, x)];
        if (winner < 0 || value > best || std::isnan(value)) {
          best = value;
          winner = ky * s.kernel_w + kx;
        }
      }
    }
    result.out[s.out_index(i, channel, oy, ox)] = best;
    result.winner[s.out_index(i, channel, oy, ox)] = static_cast<uint8_t>(winner);
  });
  return result;
}

inline std::vector<double> max_pool2d_backward(const MaxPool2dShape& s,
                                               const std::vector<double>& grad_out,
                                               const std::vector<uint8_t>& winner) {
  std::vector<double> grad_in(s.in_size());
  for_each_output(s, [&](int64_t i, int64_t channel, int64_t oy, int64_t ox) {
    const size_t out = s.out_index(i, channel, oy, ox);
    const int64_t y = oy * s.stride_h - s.pad_h + winner[out] / s.kernel_w;
    const int64_t x = ox * s.stride_w - s.pad_w + winner[out] % s.kernel_w;
    grad_in[s.in_index(i, channel, y, x)] += grad_out[out];
  });
  return grad_in;
}

}  // namespace lockstep::reference
