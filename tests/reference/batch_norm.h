// Specification of kernels/norm/batch_norm.h in double, for one group. Arrays are (pixels of all
// images, C).
#pragma once

#include <cmath>
#include <vector>

#include "kernels/norm/batch_norm.h"
#include "tests/reference/gelu.h"

namespace lockstep::reference {

using kernels::Activation;

inline double activated(double y, Activation activation) {
  if (activation == Activation::kRelu && y <= 0) return 0;
  return activation == Activation::kGelu ? y * gelu_share(y, Gelu::kErf) : y;
}
inline double activation_slope(double y, Activation activation) {
  if (activation == Activation::kRelu && y <= 0) return 0;
  return activation == Activation::kGelu ? gelu_slope(y, Gelu::kErf) : 1;
}

struct BatchNormMoments {
  std::vector<double> mean, m2;
  double count = 0;

  std::vector<double> variance(double divisor) const {
    std::vector<double> variance = m2;
    for (double& value : variance) value /= divisor;
    return variance;
  }
};

inline BatchNormMoments batch_norm_moments(const std::vector<double>& in, size_t channels) {
  BatchNormMoments moments{std::vector<double>(channels), std::vector<double>(channels)};
  moments.count = static_cast<double>(in.size() / channels);
  for (size_t i = 0; i < in.size(); ++i) moments.mean[i % channels] += in[i] / moments.count;
  for (size_t i = 0; i < in.size(); ++i) {
    const double deviation = in[i] - moments.mean[i % channels];
    moments.m2[i % channels] += deviation * deviation;
  }
  return moments;
}

inline std::vector<double> batch_norm_inference(const std::vector<double>& in,
                                                const std::vector<double>& mean,
                                                const std::vector<double>& variance,
                                                const std::vector<double>& weight,
                                                const std::vector<double>& bias,
                                                double eps,
                                                Activation activation,
                                                const std::vector<double>& residual = {}) {
  std::vector<double> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t c = i % mean.size();
    out[i] = (in[i] - mean[c]) / std::sqrt(variance[c] + eps) * weight[c] + bias[c];
    if (!residual.empty()) out[i] += residual[i];
    out[i] = activated(out[i], activation);
  }
  return out;
}

// In training, with the moments of `in` itself.
inline std::vector<double> batch_norm_forward(const std::vector<double>& in,
                                              const std::vector<double>& weight,
                                              const std::vector<double>& bias,
                                              double eps,
                                              Activation activation,
                                              const std::vector<double>& residual = {}) {
  const BatchNormMoments moments = batch_norm_moments(in, weight.size());
  return batch_norm_inference(
      in, moments.mean, moments.variance(moments.count), weight, bias, eps, activation, residual);
}

struct BatchNormGradients {
  std::vector<double> in, weight, bias, residual;
};

inline BatchNormGradients batch_norm_backward(const std::vector<double>& in,
                                              const std::vector<double>& grad_out,
                                              const std::vector<double>& weight,
                                              const std::vector<double>& bias,
                                              double eps,
                                              Activation activation,
                                              const std::vector<double>& residual = {}) {
  const size_t channels = weight.size();
  const BatchNormMoments moments = batch_norm_moments(in, channels);
  const std::vector<double> y =
      batch_norm_forward(in, weight, bias, eps, Activation::kNone, residual);
  BatchNormGradients grads{std::vector<double>(in.size()),
                           std::vector<double>(channels),
                           std::vector<double>(channels),
                           std::vector<double>(in.size())};
  const auto invstd = [&](size_t c) { return 1 / std::sqrt(moments.m2[c] / moments.count + eps); };
  const auto xhat = [&](size_t i) {
    return (in[i] - moments.mean[i % channels]) * invstd(i % channels);
  };
  const auto g = [&](size_t i) { return grad_out[i] * activation_slope(y[i], activation); };
  for (size_t i = 0; i < in.size(); ++i) {
    grads.residual[i] = g(i);
    grads.bias[i % channels] += g(i);
    grads.weight[i % channels] += g(i) * xhat(i);
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t c = i % channels;
    const double mean_g = grads.bias[c] / moments.count;
    const double mean_gx = grads.weight[c] / moments.count;
    grads.in[i] = weight[c] * invstd(c) * (g(i) - mean_g - xhat(i) * mean_gx);
  }
  return grads;
}

// `batch` holds PyTorch's estimates: the variance is divided by count - 1.
inline std::vector<double> batch_norm_running(std::vector<double> running,
                                              const std::vector<double>& batch,
                                              double momentum) {
  for (size_t c = 0; c < running.size(); ++c) {
    running[c] = (1 - momentum) * running[c] + momentum * batch[c];
  }
  return running;
}

}  // namespace lockstep::reference
