// Specification of kernels/loss/binary_cross_entropy.h in double, one image at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/reference/softmax_cross_entropy.h"

namespace lockstep::reference {

struct BinaryTargetRule {
  double smoothing = 0;
  double threshold = -1;  // below 0: none
};

inline double binary_target(size_t c,
                            const MixedLabel& of,
                            size_t classes,
                            const BinaryTargetRule& rule) {
  const double target = cross_entropy_target(c, of, classes, rule.smoothing);
  if (rule.threshold < 0) return target;
  return target > rule.threshold ? 1 : 0;
}

inline double binary_cross_entropy(const std::vector<double>& logits,
                                   const MixedLabel& label,
                                   const BinaryTargetRule& rule = {}) {
  double sum = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    const double target = binary_target(c, label, logits.size(), rule);
    sum +=
        std::max(logits[c], 0.0) - logits[c] * target + std::log1p(std::exp(-std::abs(logits[c])));
  }
  return sum / static_cast<double>(logits.size());
}

inline std::vector<double> binary_cross_entropy_gradient(const std::vector<double>& logits,
                                                         const MixedLabel& label,
                                                         const BinaryTargetRule& rule = {}) {
  const auto classes = static_cast<double>(logits.size());
  std::vector<double> gradient;
  for (size_t c = 0; c < logits.size(); ++c) {
    const double target = binary_target(c, label, logits.size(), rule);
    gradient.push_back((1 / (1 + std::exp(-logits[c])) - target) / classes);
  }
  return gradient;
}

}  // namespace lockstep::reference
