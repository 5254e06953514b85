// Specification of kernels/elementwise/gelu.h in double.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

namespace lockstep::reference {

enum class Gelu { kErf, kTanh };

inline double gelu_share(double x, Gelu form) {  // out / in
  if (form == Gelu::kErf) return 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 1 / (1 + std::exp(-2 * u));
}

inline double gelu_slope(double x, Gelu form) {
  const double share = gelu_share(x, form);
  if (form == Gelu::kErf) return share + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  const double rise = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return share + x * 2 * rise * share * (1 - share);
}

inline std::vector<double> gelu_forward(const std::vector<double>& in, Gelu form) {
  std::vector<double> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] * gelu_share(in[i], form);
  return out;
}

inline std::vector<double> gelu_backward(const std::vector<double>& in,
                                         const std::vector<double>& grad_out,
                                         Gelu form) {
  std::vector<double> grad_in(in.size());
  for (size_t i = 0; i < in.size(); ++i) grad_in[i] = grad_out[i] * gelu_slope(in[i], form);
  return grad_in;
}

}  // namespace lockstep::reference
