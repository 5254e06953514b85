// Options of photos: how they are decoded, resized and cropped.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "data/codecs/image.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Progressive resizing: the side of training images by epoch. Small images at first cost less.
struct CropRamp {
  int64_t from = 0;             // side until epoch `first`; 0: all epochs have the largest
  int64_t first = 0, last = 0;  // the largest side from epoch `last` on

  // In between on a line, rounded to a multiple of 32, halves to the even one, within from and
  // largest. Source: ffcv-imagenet's get_resolution.
  int64_t side(int64_t epoch, int64_t largest) const;
};

struct PhotoOptions {
  int64_t train_crop = 224;  // side of training images, the largest
  CropRamp train_ramp = {};
  int64_t val_resize = 256;  // short side of the others, before their center is cut out
  int64_t val_crop = 224;    // side of that
  Interpolation val_by = Interpolation::kBilinear;
  // For crops of training; none: one of the two, drawn for each image and epoch.
  std::optional<Interpolation> train_by = Interpolation::kBilinear;
  // JPEGs are decoded at 1/2, 1/4 or 1/8 of their size where what is wanted is smaller still:
  // faster, and not the same pixels.
  bool shrink = false;
  int64_t cache_bytes = 0;  // of decoded photos, both splits together
  // To see what a slow machine does.
  std::chrono::milliseconds slow_disk{0};
  std::chrono::milliseconds slow_decode{0};
};

}  // namespace lockstep::data
#pragma GCC visibility pop
