// Specification of kernels/linear/add_bias.h in double. Arrays are (pixels of all images, K).
#pragma once

#include <vector>

namespace lockstep::reference {

inline std::vector<double> add_bias_forward(std::vector<double> in,
                                            const std::vector<double>& bias) {
  for (size_t i = 0; i < in.size(); ++i) in[i] += bias[i % bias.size()];
  return in;
}

// The gradient of one shard.
inline std::vector<double> add_bias_backward(const std::vector<double>& grad_out, size_t channels) {
  std::vector<double> grad_bias(channels);
  for (size_t i = 0; i < grad_out.size(); ++i) grad_bias[i % channels] += grad_out[i];
  return grad_bias;
}

}  // namespace lockstep::reference
