// Philox4x32-10: counter-based random numbers, so that a value depends on its purpose and not on
// the rank or thread that computes it.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace lockstep {

// Purpose of a random stream. It is part of the key, so two purposes never share numbers.
enum class RandomPurpose : uint32_t {
  kDigits = 1,
  kSynthetic = 2,
  kShapes = 3,
  kAugment = 4,
  kDropout = 5,
  kMixup = 6,
  kErase = 7,
  kCutMix = 8,
  kMixChoice = 9,
  kTrivialAugment = 10,
  kStochasticDepth = 11,
  kRandAugment = 12,
  kInterpolation = 13,
};

// Four random words, or a counter. No std::array: kernels use this on every device.
struct PhiloxBlock {
  uint32_t words[4];

  constexpr bool operator==(const PhiloxBlock&) const = default;
};

inline constexpr int64_t kPhiloxOperations = 20;  // per word: ten rounds of eight, for four words

// Always inlined, because kernels are compiled for several x86-64 levels.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// Vectors: tests/core/philox_test.cpp, from Random123's kat_vectors.
[[gnu::always_inline]] constexpr PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53U} * counter.words[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57U} * counter.words[2];
    counter = {{static_cast<uint32_t>(product1 >> 32) ^ counter.words[1] ^ key0,
                static_cast<uint32_t>(product1),
                static_cast<uint32_t>(product0 >> 32) ^ counter.words[3] ^ key1,
                static_cast<uint32_t>(product0)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

// Numbers [4 * block, 4 * block + 4) of an item's stream: see PhiloxStream. Requires: block < 2^24.
[[gnu::always_inline]] constexpr PhiloxBlock philox_block(
    uint64_t seed, RandomPurpose purpose, uint32_t epoch, uint64_t item, uint32_t block) {
  return philox4x32({{static_cast<uint32_t>(item),
                      static_cast<uint32_t>(item >> 32),
                      epoch,
                      (static_cast<uint32_t>(purpose) << 24) + block}},
                    seed);
}

// Maps a random word to [0, bound). Uniform except for a bias of at most 2^-32 * bound. Requires:
// bound >= 1.
[[gnu::always_inline]] constexpr uint32_t number_below(uint32_t bound, uint32_t word) {
  return static_cast<uint32_t>((uint64_t{word} * bound) >> 32);
}

// The random numbers of one item (a sample, an element), in turn. Streams differ whenever seed,
// purpose, epoch or item differ. Requires: below 2^26 draws.
class PhiloxStream {
 public:
  PhiloxStream(uint64_t seed, RandomPurpose purpose, uint32_t epoch, uint64_t item)
      : seed_(seed), item_(item), purpose_(purpose), epoch_(epoch) {}

  uint32_t next() {
    if (used_ == 4) {
      block_ = philox_block(seed_, purpose_, epoch_, item_, blocks_++);
      used_ = 0;
    }
    return block_.words[used_++];
  }

  // Draws a number from 0 up to but without `bound`, as number_below() does.
  uint32_t below(uint32_t bound) { return number_below(bound, next()); }

 private:
  uint64_t seed_;
  uint64_t item_;
  RandomPurpose purpose_;
  uint32_t epoch_;
  uint32_t blocks_ = 0;
  PhiloxBlock block_{};
  uint32_t used_ = 4;
};

}  // namespace lockstep
#pragma GCC visibility pop
