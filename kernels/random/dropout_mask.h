// Which elements dropout keeps. All devices and x86-64 levels share this definition.
#pragma once

#include "core/philox.h"
#include "kernels/random/drop_rule.h"
#include "kernels/random/dropout.h"

namespace lockstep::kernels {

struct DropoutMask {
  uint64_t seed;
  uint32_t layer;
  DropRule rule;

  [[gnu::always_inline]] constexpr explicit DropoutMask(const DropoutParams& params)
      : seed(params.seed), layer(params.layer), rule(params.p) {}

  // The draws for elements [4 * block, 4 * block + 4) of an image.
  [[gnu::always_inline]] constexpr PhiloxBlock draws(int64_t image, int64_t block) const {
    return philox_block(seed,
                        RandomPurpose::kDropout,
                        layer,
                        static_cast<uint64_t>(image),
                        static_cast<uint32_t>(block));
  }
  [[gnu::always_inline]] constexpr float factor(uint32_t draw) const { return rule.factor(draw); }
};

}  // namespace lockstep::kernels
