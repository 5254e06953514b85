// Affine transforms of images: rotation, translation and shear.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "data/codecs/image.h"

namespace lockstep::data {

inline uint8_t clip_to_byte(double value) {
  return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<uint8_t>(value);
}

// Maps point (x, y) of the result to the point (xx x + xy y + x0, yx x + yy y + y0) of the
// original.
struct Affine {
  double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
};

// Resamples the image in place. Points outside of the original become `fill`. Shapes: pixels HWC of
// `size`, RGB. Source: Pillow's Image.transform(), bit for bit.
void resample(const Affine& from,
              Interpolation by,
              const std::array<uint8_t, 3>& fill,
              const ImageSize& size,
              std::span<uint8_t> pixels);

}  // namespace lockstep::data
