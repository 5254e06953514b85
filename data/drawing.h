// Random integers and rotations for drawn images, equal on every machine.
#pragma once

#include <cstdint>

#include "core/philox.h"

namespace lockstep::data {

// Uniform in [-reach, reach].
inline int32_t jitter(PhiloxStream& random, int32_t reach) {
  return static_cast<int32_t>(random.below(static_cast<uint32_t>(2 * reach + 1))) - reach;
}

// Uniform in [low, high].
inline int32_t between(PhiloxStream& random, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random.below(static_cast<uint32_t>(high - low + 1)));
}

// Cosine and sine in 1/kOne.
struct Rotation {
  static constexpr int32_t kOne = 1 << 14;

  // By the angle whose half has the tangent t / kOne: cos = (1 - t^2) / (1 + t^2), sin = 2t / (1 +
  // t^2). Requires: |t| <= kOne, a quarter turn.
  static constexpr Rotation from_half_tangent(int64_t t) {
    constexpr int64_t kOne2 = int64_t{kOne} * kOne;
    return {.cosine = static_cast<int32_t>((kOne2 - t * t) * kOne / (kOne2 + t * t)),
            .sine = static_cast<int32_t>(2 * t * kOne * kOne / (kOne2 + t * t))};
  }

  int32_t cosine = kOne;
  int32_t sine = 0;
};

}  // namespace lockstep::data
