// Which branches stochastic depth keeps. All devices and x86-64 levels share this definition.
#pragma once

#include "core/philox.h"
#include "kernels/random/drop_rule.h"
#include "kernels/random/stochastic_depth.h"

namespace lockstep::kernels {

struct DepthDraw {
  uint64_t seed;
  uint32_t block;
  DropRule rule;

  [[gnu::always_inline]] constexpr explicit DepthDraw(const StochasticDepthParams& params)
      : seed(params.seed), block(params.block), rule(params.p) {}

  [[gnu::always_inline]] constexpr float factor(int64_t image) const {
    const PhiloxBlock draws =
        philox_block(seed, RandomPurpose::kStochasticDepth, block, static_cast<uint64_t>(image), 0);
    return rule.factor(draws.words[0]);
  }
};

}  // namespace lockstep::kernels
