// Options of photos: how they are decoded, resized and cropped.
#pragma once

#include <chrono>
#include <cstdint>

#pragma GCC visibility push(default)
namespace lockstep::data {

struct PhotoOptions {
  int64_t train_crop = 224;  // side of training images
  int64_t val_resize = 256;  // short side of the others, before their center is cut out
  int64_t val_crop = 224;    // side of that
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
