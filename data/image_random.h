// The random numbers of one image's changes, drawn in turn.
#pragma once

#include <cstdint>

#include "core/philox.h"

namespace lockstep::data {

// A stream without a fixed number of draws, since a crop may take up to ten attempts.
class ImageRandom {
 public:
  ImageRandom(uint64_t seed, RandomPurpose purpose, int64_t epoch, int64_t image)
      : stream_(seed, purpose, static_cast<uint32_t>(epoch), static_cast<uint64_t>(image)) {}

  float uniform(float low, float high) {
    const float unit = static_cast<float>(stream_.next() >> 8) * 0x1p-24F;
    return low + unit * (high - low);
  }
  int64_t below(int64_t n) { return stream_.below(static_cast<uint32_t>(n)); }

 private:
  PhiloxStream stream_;
};

}  // namespace lockstep::data
