// Draws the random changes to a training image that keep its class.
#pragma once

#include <cstdint>

#include "core/philox.h"

#pragma GCC visibility push(default)
namespace lockstep {

enum class Flip : uint8_t {
  kNone,
  kRandom,      // every other image, drawn in each epoch
  kAlternating  // drawn in epoch 0; each later epoch shows the other side
};

// The pixels that a crop shows beyond the image's edge.
enum class PadMode : uint8_t {
  kZero,    // black
  kReflect  // the image, mirrored at the middle of its outermost pixels
};

// timm's RandAugment: `layers` changes to each photo, each made with a probability. 0 layers: no
// changes.
struct RandAugment {
  int64_t layers = 0;
  double magnitude = 10;
  double deviation = 0;  // strengths are normally distributed around the magnitude
  bool uniform = false;  // instead uniformly, between 0 and the magnitude
  double most = 10;      // upper limit of a change's strength
  double probability = 0.5;
  bool increasing = false;  // colors change more with more magnitude, in both directions
};

// By default images are not changed. An image's changes are a pure function of (seed, epoch, index
// in the data set); rank, worker, batch and device do not matter.
struct Augmentation {
  int64_t pad = 0;  // pixels around the image before a crop of its size is cut at random
  PadMode pad_mode = PadMode::kZero;
  Flip flip = Flip::kNone;    // left to right
  bool resized_crop = false;  // for photos of any size: data/random_resized_crop.h
  bool trivial = false;       // one more change to such a crop: data/trivial_augment.h
  bool bilinear = false;      // that change interpolates, instead of taking the nearest pixel
  RandAugment rand = {};      // several changes to such a crop: data/rand_augment.h
  uint64_t seed = 0;

  bool changes_images() const { return pad > 0 || flip != Flip::kNone || resized_crop; }
};

struct CropFlip {
  int64_t top = 0;   // of the crop in the padded image, 0..2 pad
  int64_t left = 0;  // same range
  bool flip = false;

  bool operator==(const CropFlip& other) const = default;
};

// The first random words that an image's changes are drawn from. Requires: 0 <= epoch < 2^32.
[[gnu::always_inline]] constexpr PhiloxBlock augmentation_block(const Augmentation& augmentation,
                                                                int64_t epoch,
                                                                int64_t image) {
  return philox_block(augmentation.seed,
                      RandomPurpose::kAugment,
                      static_cast<uint32_t>(epoch),
                      static_cast<uint64_t>(image),
                      0);
}

// Tells whether the image is flipped, from word `word` of `block`, its block in this epoch.
[[gnu::always_inline]] constexpr bool draw_flip(const Augmentation& augmentation,
                                                int64_t epoch,
                                                int64_t image,
                                                const PhiloxBlock& block,
                                                int word) {
  if (augmentation.flip == Flip::kNone) return false;
  if (augmentation.flip == Flip::kRandom) return number_below(2, block.words[word]) == 1;
  const PhiloxBlock first = augmentation_block(augmentation, 0, image);
  return (number_below(2, first.words[word]) == 1) != (epoch % 2 == 1);
}

// All offsets are equally likely. Requires: 0 <= pad < 2^30, 0 <= epoch < 2^32.
[[gnu::always_inline]] constexpr CropFlip draw_crop_flip(const Augmentation& augmentation,
                                                         int64_t epoch,
                                                         int64_t image) {
  const PhiloxBlock random = augmentation_block(augmentation, epoch, image);
  const auto offsets = static_cast<uint32_t>(2 * augmentation.pad + 1);
  return {.top = number_below(offsets, random.words[0]),
          .left = number_below(offsets, random.words[1]),
          .flip = draw_flip(augmentation, epoch, image, random, 2)};
}

// The index of the pixel shown at position i of a line of `size` pixels, where i may lie outside of
// the line; -1 for black. Requires, for kReflect: -size < i < 2 * size - 1.
template <class Int>
[[gnu::always_inline]] constexpr Int pixel_at(PadMode mode, Int i, Int size) {
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::kZero) return -1;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

// Tells whether the padding is in range: at most the image's shorter side, and less than that for
// kReflect.
[[gnu::always_inline]] constexpr bool pad_fits(const Augmentation& augmentation,
                                               int64_t height,
                                               int64_t width) {
  const int64_t shorter = height < width ? height : width;
  const int64_t most = augmentation.pad_mode == PadMode::kReflect ? shorter - 1 : shorter;
  return augmentation.pad == 0 || (augmentation.pad > 0 && augmentation.pad <= most);
}

}  // namespace lockstep
#pragma GCC visibility pop
