// Which elements dropout keeps. All devices and x86-64 levels share this definition.
#pragma once

#include "core/philox.h"
#include "kernels/random/dropout.h"

namespace lockstep::kernels {

struct DropoutMask {
  uint64_t seed;
  uint32_t layer;
  uint32_t first_kept;  // smaller draws drop the element
  float scale;          // factor of a kept element; 0 for p = 1

  [[gnu::always_inline]] constexpr explicit DropoutMask(const DropoutParams& params)
      : seed(params.seed),
        layer(params.layer),
        first_kept(params.p < 1 ? static_cast<uint32_t>(params.p * 0x1p32) : 0),
        scale(params.p < 1 ? static_cast<float>(1 / (1 - params.p)) : 0) {}

  // The draws for elements [4 * block, 4 * block + 4) of an image.
  [[gnu::always_inline]] constexpr PhiloxBlock draws(int64_t image, int64_t block) const {
    return philox_block(seed,
                        RandomPurpose::kDropout,
                        layer,
                        static_cast<uint64_t>(image),
                        static_cast<uint32_t>(block));
  }
  [[gnu::always_inline]] constexpr float factor(uint32_t draw) const {
    return draw < first_kept ? 0 : scale;
  }
};

}  // namespace lockstep::kernels
