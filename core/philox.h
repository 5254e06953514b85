// Philox4x32-10: counter-based random numbers, so that a value depends on what it is for and not on
// who computes it.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// What a random stream is for; part of the key, so that two purposes never share numbers.
enum class RandomPurpose : uint32_t {
  kDigits = 1,
  kSynthetic = 2,
  kShapes = 3,
  kAugment = 4,
};

// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// Vectors: tests/core/philox_test.cpp, from Random123's kat_vectors.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

// The numbers of one item (a sample, an element): next() walks through as many as are asked for.
// Streams differ whenever seed, purpose, epoch or item differ. Requires: below 2^26 draws.
class PhiloxStream {
 public:
  PhiloxStream(uint64_t seed, RandomPurpose purpose, uint32_t epoch, uint64_t item)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{static_cast<uint32_t>(item),
                 static_cast<uint32_t>(item >> 32),
                 epoch,
                 static_cast<uint32_t>(purpose) << 24} {}

  uint32_t next() {
    if (used_ == 4) {
      block_ = philox4x32(counter_, key_);
      ++counter_[3];
      used_ = 0;
    }
    return block_[used_++];
  }

  // Uniform in [0, bound), exact to 2^-32 * bound. Requires: bound >= 1.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((uint64_t{next()} * bound) >> 32); }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  uint32_t used_ = 4;
};

}  // namespace lockstep
