// Specification in double of the operations that kernels/conv/conv2d_fused.h adds to a convolution.
// Arrays are in memory order: NHWC.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::reference {

// The normalized input, with a scale and a shift for each channel.
inline std::vector<double> normed(const std::vector<double>& in,
                                  const std::vector<double>& scales,
                                  const std::vector<double>& shifts) {
  std::vector<double> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const double value = in[i] * scales[i % scales.size()] + shifts[i % shifts.size()];
    out[i] = value <= 0 ? 0 : value;
  }
  return out;
}

struct ChannelSums {
  std::vector<double> values, squares;  // per channel
};

inline ChannelSums channel_sums(const std::vector<double>& out, size_t channels) {
  ChannelSums sums{std::vector<double>(channels), std::vector<double>(channels)};
  for (size_t i = 0; i < out.size(); ++i) {
    sums.values[i % channels] += out[i];
    sums.squares[i % channels] += out[i] * out[i];
  }
  return sums;
}

}  // namespace lockstep::reference
