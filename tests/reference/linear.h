// Specification of kernels/linear/linear.h in double. Arrays are row-major: in (N,K), weight (O,K),
// out (N,O).
#pragma once

#include <vector>

namespace lockstep::reference {

struct LinearSizes {
  size_t n = 1, k = 1, o = 1;
};

// `bias`: O values, or empty.
inline std::vector<double> linear_forward(const std::vector<double>& in,
                                          const std::vector<double>& weight,
                                          const std::vector<double>& bias,
                                          const LinearSizes& z) {
  std::vector<double> out(z.n * z.o);
  for (size_t n = 0; n < z.n; ++n)
    for (size_t o = 0; o < z.o; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (size_t k = 0; k < z.k; ++k) sum += weight[o * z.k + k] * in[n * z.k + k];
      out[n * z.o + o] = sum;
    }
  return out;
}

inline std::vector<double> linear_backward_data(const std::vector<double>& grad_out,
                                                const std::vector<double>& weight,
                                                const LinearSizes& z) {
  std::vector<double> grad_in(z.n * z.k);
  for (size_t n = 0; n < z.n; ++n)
    for (size_t o = 0; o < z.o; ++o)
      for (size_t k = 0; k < z.k; ++k)
        grad_in[n * z.k + k] += grad_out[n * z.o + o] * weight[o * z.k + k];
  return grad_in;
}

inline std::vector<double> linear_backward_weight(const std::vector<double>& in,
                                                  const std::vector<double>& grad_out,
                                                  const LinearSizes& z) {
  std::vector<double> grad_weight(z.o * z.k);
  for (size_t n = 0; n < z.n; ++n)
    for (size_t o = 0; o < z.o; ++o)
      for (size_t k = 0; k < z.k; ++k)
        grad_weight[o * z.k + k] += grad_out[n * z.o + o] * in[n * z.k + k];
  return grad_weight;
}

inline std::vector<double> linear_backward_bias(const std::vector<double>& grad_out,
                                                const LinearSizes& z) {
  std::vector<double> grad_bias(z.o);
  for (size_t i = 0; i < grad_out.size(); ++i) grad_bias[i % z.o] += grad_out[i];
  return grad_bias;
}

}  // namespace lockstep::reference
