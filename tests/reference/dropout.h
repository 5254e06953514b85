// Specification of kernels/random/dropout.h in double. Forward and backward are the same function.
#pragma once

#include <cstdint>
#include <vector>

#include "core/philox.h"

namespace lockstep::reference {

inline std::vector<double> dropout(std::vector<double> values,
                                   const std::vector<int64_t>& images,
                                   double p,
                                   uint64_t seed,
                                   uint32_t layer) {
  const size_t features = images.empty() ? 0 : values.size() / images.size();
  for (size_t n = 0; n < images.size(); ++n) {
    PhiloxStream random(seed, RandomPurpose::kDropout, layer, static_cast<uint64_t>(images[n]));
    for (size_t j = 0; j < features; ++j) {
      const bool dropped = random.next() < p * 0x1p32;
      values[n * features + j] *= dropped ? 0 : 1 / (1 - p);
    }
  }
  return values;
}

}  // namespace lockstep::reference
