// Specification of kernels/elementwise/channel_gate.h in double. Images are NHWC, `pixels` = H*W.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace lockstep::reference {

// The value and the slope of a gate at x.
struct Gate {
  double value, slope;
};
inline Gate hard_gate(double x) {
  return {std::clamp(x + 3, 0.0, 6.0) / 6, x > -3 && x < 3 ? 1.0 / 6 : 0};
}
inline Gate sigmoid_gate(double x) {
  const double value = 1 / (1 + std::exp(-x));
  return {value, value * (1 / (1 + std::exp(x)))};
}
using GateOf = Gate(double x);

struct GateSizes {
  size_t images, channels, pixels;

  size_t gate_of(size_t element) const {
    return element / (pixels * channels) * channels + element % channels;
  }
};

inline std::vector<double> channel_gate_forward(const std::vector<double>& in,
                                                const std::vector<double>& gate,
                                                const GateSizes& sizes,
                                                GateOf* form) {
  std::vector<double> out;
  for (size_t i = 0; i < in.size(); ++i) {
    out.push_back(in[i] * form(gate[sizes.gate_of(i)]).value);
  }
  return out;
}

struct GateGradients {
  std::vector<double> in, gate;
};

inline GateGradients channel_gate_backward(const std::vector<double>& grad_out,
                                           const std::vector<double>& in,
                                           const std::vector<double>& gate,
                                           const GateSizes& sizes,
                                           GateOf* form) {
  GateGradients gradients{.in = {}, .gate = std::vector<double>(gate.size())};
  for (size_t i = 0; i < in.size(); ++i) {
    const Gate at = form(gate[sizes.gate_of(i)]);
    gradients.in.push_back(grad_out[i] * at.value);
    gradients.gate[sizes.gate_of(i)] += grad_out[i] * in[i] * at.slope;
  }
  return gradients;
}

}  // namespace lockstep::reference
