// Random changes to training images that keep their class.
#pragma once

#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace lockstep::data {

// None by default. What an image gets is a pure function of (seed, epoch, index in the data set):
// no rank, worker or batch has a part in it.
struct Augmentation {
  int64_t pad = 0;    // black pixels around the image before a crop of its size is cut at random
  bool flip = false;  // left to right, for every other image
  uint64_t seed = 0;

  bool changes_images() const { return pad > 0 || flip; }
};

struct CropFlip {
  int64_t top = 0;   // of the crop in the padded image, 0..2 pad
  int64_t left = 0;  // likewise
  bool flip = false;

  bool operator==(const CropFlip& other) const = default;
};

// All offsets are equally likely. Requires: 0 <= pad < 2^30, 0 <= epoch < 2^32.
CropFlip draw_crop_flip(const Augmentation& augmentation, int64_t epoch, int64_t image);

// Writes the crop of `from` padded with `pad` zeros on each side, then flipped.
// Shapes: from, to: HWC of `shape`, not overlapping. Requires: pad at most height and width;
// offsets in 0..2 pad.
// Source: torchvision.transforms.RandomCrop, RandomHorizontalFlip, as sets of results.
void crop_flip(const ImageShape& shape,
               int64_t pad,
               const CropFlip& change,
               std::span<const uint8_t> from,
               std::span<uint8_t> to);

}  // namespace lockstep::data
