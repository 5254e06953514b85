// Specification of kernels/random/stochastic_depth.h in double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/philox.h"

namespace lockstep::reference {

struct StochasticDepth {
  double p = 0;
  uint64_t seed = 0;
  uint32_t block = 0;

  double factor(int64_t image) const {
    PhiloxStream random(seed, RandomPurpose::kStochasticDepth, block, static_cast<uint64_t>(image));
    return random.next() < p * 0x1p32 ? 0 : 1 / (1 - p);
  }
};

inline std::vector<double> stochastic_depth(const std::vector<double>& branch,
                                            const std::vector<double>& shortcut,
                                            const std::vector<int64_t>& images,
                                            const StochasticDepth& rule) {
  const size_t features = images.empty() ? 0 : branch.size() / images.size();
  std::vector<double> out;
  for (size_t n = 0; n < images.size(); ++n) {
    for (size_t i = n * features; i < (n + 1) * features; ++i) {
      out.push_back(std::max(0.0, rule.factor(images[n]) * branch[i] + shortcut[i]));
    }
  }
  return out;
}

struct StochasticDepthGradients {
  std::vector<double> branch, shortcut;
};

inline StochasticDepthGradients stochastic_depth_gradients(const std::vector<double>& out,
                                                           const std::vector<double>& grad_out,
                                                           const std::vector<int64_t>& images,
                                                           const StochasticDepth& rule) {
  const size_t features = images.empty() ? 0 : out.size() / images.size();
  StochasticDepthGradients gradients;
  for (size_t n = 0; n < images.size(); ++n) {
    for (size_t i = n * features; i < (n + 1) * features; ++i) {
      gradients.shortcut.push_back(out[i] <= 0 ? 0 : grad_out[i]);
      gradients.branch.push_back(rule.factor(images[n]) * gradients.shortcut.back());
    }
  }
  return gradients;
}

}  // namespace lockstep::reference
