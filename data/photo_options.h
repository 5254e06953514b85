// Options of photos: how they are decoded, resized and cropped.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/codecs/image.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Progressive resizing: training begins with small images, which cost less.
struct CropRamp {
  int64_t from = 0;             // side until epoch `first`; 0: the largest in all epochs
  int64_t first = 0, last = 0;  // the largest side from epoch `last` on

  // The side in `epoch`. Between `first` and `last` it is interpolated linearly, rounded to a
  // multiple of 32 (ties to the even multiple), and clamped to [from, largest]. Source:
  // ffcv-imagenet's get_resolution.
  int64_t side(int64_t epoch, int64_t largest) const;
};

struct PhotoOptions {
  int64_t train_crop = 224;  // side of training images, the largest
  CropRamp train_ramp = {};
  int64_t val_resize = 256;  // short side of validation images, before their center is cropped
  int64_t val_crop = 224;    // side of that crop
  Interpolation val_by = Interpolation::kBilinear;
  // For training crops; none: drawn at random for each image and epoch.
  std::optional<Interpolation> train_by = Interpolation::kBilinear;
  // Decodes JPEGs at 1/2, 1/4 or 1/8 of their size if the result is at most that large. Faster, but
  // the pixels differ.
  bool shrink = false;
  int64_t cache_bytes = 0;  // for decoded photos of both splits together
  // By label; a split may lack some. Empty: the names of the folders of `train`, or of `val` alone.
  std::vector<std::string> classes{};
  // Artificial delays, to simulate a slow machine.
  std::chrono::milliseconds slow_disk{0};
  std::chrono::milliseconds slow_decode{0};
};

}  // namespace lockstep::data
#pragma GCC visibility pop
