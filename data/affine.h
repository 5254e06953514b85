// Images turned, shifted and slanted.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "data/codecs/image.h"

namespace lockstep::data {

// Where point (x, y) of the result lies: (xx x + xy y + x0, yx x + yy y + y0).
struct Affine {
  double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
};

// Resamples the image in place, with `fill` where nothing comes in. Shapes: pixels HWC of `size`,
// RGB. Source: Pillow's Image.transform(), bit for bit.
void resample(const Affine& from,
              Interpolation by,
              const std::array<uint8_t, 3>& fill,
              const ImageSize& size,
              std::span<uint8_t> pixels);

}  // namespace lockstep::data
