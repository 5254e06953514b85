// torch's random numbers, for draws that follow torchvision's.
#pragma once

#include <cstdint>

#include "core/mt19937.h"

namespace lockstep::testing {

// torch's generator, drawn from as torchvision does.
class TorchRandom {
 public:
  explicit TorchRandom(uint64_t seed) : rng_(seed) {}

  float uniform(float low, float high) {
    float value = 0;
    rng_.uniform({&value, 1}, low, high);
    return value;
  }
  int64_t below(int64_t n) {
    return static_cast<int64_t>(rng_.next_u32() % static_cast<uint32_t>(n));
  }

 private:
  Mt19937 rng_;
};

}  // namespace lockstep::testing
