// Which branches stochastic depth keeps. All devices and x86-64 levels share this definition.
#pragma once

#include "core/philox.h"
#include "kernels/random/stochastic_depth.h"

namespace lockstep::kernels {

struct DepthDraw {
  uint64_t seed;
  uint32_t block;
  uint32_t first_kept;  // smaller draws leave the branch out
  float scale;          // factor of a kept branch; 0 for p = 1

  [[gnu::always_inline]] constexpr explicit DepthDraw(const StochasticDepthParams& params)
      : seed(params.seed),
        block(params.block),
        first_kept(params.p < 1 ? static_cast<uint32_t>(params.p * 0x1p32) : 0),
        scale(params.p < 1 ? static_cast<float>(1 / (1 - params.p)) : 0) {}

  [[gnu::always_inline]] constexpr float factor(int64_t image) const {
    const PhiloxBlock draws =
        philox_block(seed, RandomPurpose::kStochasticDepth, block, static_cast<uint64_t>(image), 0);
    return draws.words[0] < first_kept ? 0 : scale;
  }
};

}  // namespace lockstep::kernels
