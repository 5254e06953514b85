// Draws the random changes to a training image that keep its class.
#pragma once

#include <cstdint>

#include "core/philox.h"

#pragma GCC visibility push(default)
namespace lockstep {

// None by default. An image's changes are a pure function of (seed, epoch, index in the data set);
// rank, worker, batch and device do not matter.
struct Augmentation {
  int64_t pad = 0;    // black pixels around the image before a crop of its size is cut at random
  bool flip = false;  // left to right, for every other image
  bool resized_crop = false;  // of photos of any size: data/random_resized_crop.h
  uint64_t seed = 0;

  bool changes_images() const { return pad > 0 || flip || resized_crop; }
};

struct CropFlip {
  int64_t top = 0;   // of the crop in the padded image, 0..2 pad
  int64_t left = 0;  // likewise
  bool flip = false;

  bool operator==(const CropFlip& other) const = default;
};

// All offsets are equally likely. Requires: 0 <= pad < 2^30, 0 <= epoch < 2^32.
[[gnu::always_inline]] constexpr CropFlip draw_crop_flip(const Augmentation& augmentation,
                                                         int64_t epoch,
                                                         int64_t image) {
  const PhiloxBlock random = philox_block(augmentation.seed,
                                          RandomPurpose::kAugment,
                                          static_cast<uint32_t>(epoch),
                                          static_cast<uint64_t>(image),
                                          0);
  const auto offsets = static_cast<uint32_t>(2 * augmentation.pad + 1);
  return {.top = number_below(offsets, random.words[0]),
          .left = number_below(offsets, random.words[1]),
          .flip = number_below(2, random.words[2]) == 1 && augmentation.flip};
}

}  // namespace lockstep
#pragma GCC visibility pop
