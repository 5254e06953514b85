// Inputs of adaptive_avg_pool2d, for the tests of both backends.
#pragma once

#include <vector>

#include "core/shards.h"
#include "tests/reference/adaptive_avg_pool2d.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing {

// Images, channels, height, width, windows down, windows across.
inline const std::vector<reference::AdaptivePoolSizes> kAdaptivePools = {
    {3, 5, 6, 6, 6, 6},     // one pixel per window; no packs
    {2, 16, 1, 1, 6, 6},    // pixels repeat
    {2, 20, 13, 7, 6, 3},   // windows overlap; half packs
    {1, 33, 12, 14, 6, 7},  // windows do not overlap
    {2, 18, 3, 5, 7, 2},    // more windows down, fewer across; quarter packs
    {2, 0, 3, 3, 2, 2},
    {0, 4, 3, 3, 2, 2},
};

struct AdaptivePoolCase {
  AdaptivePoolCase(const reference::AdaptivePoolSizes& s, Dtype dtype)
      : sizes(s),
        shards(Shards::cut(count(s.images), 2, 1)),
        in(rounded_to(dtype, random(s.height, s.width, 1))),
        grad_out(rounded_to(dtype, random(s.out_height, s.out_width, 2))) {}

  // An upper bound of the number of terms in a sum.
  int64_t terms() const { return count(sizes.height * sizes.width + 36); }

  reference::AdaptivePoolSizes sizes;
  Shards shards;
  Tensor in, grad_out;

 private:
  static int64_t count(size_t value) { return static_cast<int64_t>(value); }
  Tensor random(size_t height, size_t width, uint64_t seed) const {
    return random_tensor({count(sizes.images), count(sizes.channels), count(height), count(width)},
                         seed);
  }
};

}  // namespace lockstep::testing
