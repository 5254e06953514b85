// Specification of kernels/loss/softmax_cross_entropy.h in double, one image at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::reference {

inline std::vector<double> log_softmax(const std::vector<double>& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - max);
  std::vector<double> result;
  for (const double logit : logits) result.push_back(logit - max - std::log(sum));
  return result;
}

// The target of an image with two labels: `mix` is the weight of the first one.
struct MixedLabel {
  size_t label, other;
  double mix;

  MixedLabel(size_t only) : label(only), other(only), mix(1) {}  // NOLINT: the usual case
  MixedLabel(size_t first, size_t second, double weight)
      : label(first), other(second), mix(weight) {}
  size_t heavier() const { return mix < 0.5 ? other : label; }
};

inline double cross_entropy_target(size_t c,
                                   const MixedLabel& of,
                                   size_t classes,
                                   double smoothing) {
  const double mixed = (c == of.label ? of.mix : 0) + (c == of.other ? 1 - of.mix : 0);
  return (1 - smoothing) * mixed + smoothing / static_cast<double>(classes);
}

inline double cross_entropy(const std::vector<double>& logits,
                            const MixedLabel& label,
                            double smoothing) {
  const std::vector<double> log_p = log_softmax(logits);
  double loss = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    const double target = cross_entropy_target(c, label, logits.size(), smoothing);
    if (target != 0) loss -= target * log_p[c];
  }
  return loss;
}

inline std::vector<double> cross_entropy_gradient(const std::vector<double>& logits,
                                                  const MixedLabel& label,
                                                  double smoothing) {
  const std::vector<double> log_p = log_softmax(logits);
  std::vector<double> gradient;
  for (size_t c = 0; c < logits.size(); ++c) {
    const double target = cross_entropy_target(c, label, logits.size(), smoothing);
    gradient.push_back(std::exp(log_p[c]) - target);
  }
  return gradient;
}

inline int target_rank(const std::vector<double>& logits, size_t label) {
  int above = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    if (std::isnan(logits[c])) return static_cast<int>(logits.size());
    if (logits[c] > logits[label] || (logits[c] == logits[label] && c < label)) ++above;
  }
  return above;
}

}  // namespace lockstep::reference
