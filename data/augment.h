// Random changes to training images, of bytes.
#pragma once

#include <cstdint>
#include <span>

#include "core/augmentation.h"
#include "data/dataset.h"

namespace lockstep::data {

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
