// Specification of kernels/elementwise/relu.h in double.
#pragma once

#include <vector>

namespace lockstep::reference {

inline std::vector<double> relu_forward(const std::vector<double>& in) {
  std::vector<double> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] <= 0 ? 0 : in[i];
  return out;
}

inline std::vector<double> relu_backward(const std::vector<double>& out,
                                         const std::vector<double>& grad_out) {
  std::vector<double> grad_in(out.size());
  for (size_t i = 0; i < out.size(); ++i) grad_in[i] = out[i] <= 0 ? 0 : grad_out[i];
  return grad_in;
}

}  // namespace lockstep::reference
