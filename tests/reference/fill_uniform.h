// Specification of kernels/random/fill_uniform.h in double.
#pragma once

#include <vector>

#include "core/philox.h"

namespace lockstep::reference {

inline std::vector<double> fill_uniform(
    size_t count, uint64_t seed, RandomPurpose purpose, uint32_t epoch, double low, double high) {
  std::vector<double> out(count);
  for (size_t item = 0; 4 * item < count; ++item) {
    PhiloxStream random(seed, purpose, epoch, item);
    for (size_t i = 4 * item; i < 4 * item + 4 && i < count; ++i) {
      out[i] = low + (high - low) * static_cast<double>(random.next() / 256) / 0x1p24;
    }
  }
  return out;
}

}  // namespace lockstep::reference
