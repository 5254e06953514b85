// Specification of kernels/elementwise/concat_channels.h. Images are NHWC; `rows` = N*H*W.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::reference {

inline std::vector<double> concat_channels_forward(const std::vector<double>& a,
                                                   const std::vector<double>& b,
                                                   size_t rows) {
  std::vector<double> out;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < a.size() / rows; ++c) out.push_back(a[row * (a.size() / rows) + c]);
    for (size_t c = 0; c < b.size() / rows; ++c) out.push_back(b[row * (b.size() / rows) + c]);
  }
  return out;
}

// The gradients of a, which has `channels_of_a` channels, and of b.
inline std::pair<std::vector<double>, std::vector<double>> concat_channels_backward(
    const std::vector<double>& grad_out, size_t rows, size_t channels_of_a) {
  std::vector<double> grad_a, grad_b;
  for (size_t i = 0; i < grad_out.size(); ++i) {
    const bool is_a = i % (grad_out.size() / rows) < channels_of_a;
    (is_a ? grad_a : grad_b).push_back(grad_out[i]);
  }
  return {grad_a, grad_b};
}

}  // namespace lockstep::reference
