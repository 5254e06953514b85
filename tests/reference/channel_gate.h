// Specification of kernels/elementwise/channel_gate.h in double. Images are NHWC, `pixels` = H*W.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep::reference {

inline double hard_sigmoid(double x) {
  return std::clamp(x + 3, 0.0, 6.0) / 6;
}

struct GateSizes {
  size_t images, channels, pixels;

  size_t gate_of(size_t element) const {
    return element / (pixels * channels) * channels + element % channels;
  }
};

inline std::vector<double> channel_gate_forward(const std::vector<double>& in,
                                                const std::vector<double>& gate,
                                                const GateSizes& sizes) {
  std::vector<double> out;
  for (size_t i = 0; i < in.size(); ++i) {
    out.push_back(in[i] * hard_sigmoid(gate[sizes.gate_of(i)]));
  }
  return out;
}

struct GateGradients {
  std::vector<double> in, gate;
};

inline GateGradients channel_gate_backward(const std::vector<double>& grad_out,
                                           const std::vector<double>& in,
                                           const std::vector<double>& gate,
                                           const GateSizes& sizes) {
  GateGradients gradients{.in = {}, .gate = std::vector<double>(gate.size())};
  for (size_t i = 0; i < in.size(); ++i) {
    const double x = gate[sizes.gate_of(i)];
    gradients.in.push_back(grad_out[i] * hard_sigmoid(x));
    if (x > -3 && x < 3) gradients.gate[sizes.gate_of(i)] += grad_out[i] * in[i] / 6;
  }
  return gradients;
}

}  // namespace lockstep::reference
