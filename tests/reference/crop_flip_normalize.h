// Specification of kernels/image/normalize_image.h for one image, NHWC.
#pragma once

#include <vector>

#include "tests/reference/normalize_image.h"

namespace lockstep::reference {

struct CropFlipNormalizeGeometry {
  int64_t channels, height, width, pad;
  bool mirrored;      // whether padding mirrors the image; else it is black
  int64_t top, left;  // of the crop in the padded image
  bool flip;
};

// The pixel that a position in or beyond a line of `size` pixels shows; -1 for black. Mirroring
// reflects at each end without repeating the last pixel.
inline int64_t pixel_beyond(bool mirrored, int64_t place, int64_t size) {
  const int64_t turned = place < 0       ? -place
                         : place >= size ? size - 1 - (place - (size - 1))
                                         : place;
  return mirrored || turned == place ? turned : -1;
}

// mean, std: one value per channel.
inline std::vector<float> crop_flip_normalize(const uint8_t* image,
                                              const CropFlipNormalizeGeometry& g,
                                              const std::vector<float>& mean,
                                              const std::vector<float>& std) {
  std::vector<float> out;
  for (int64_t row = 0; row < g.height; ++row)
    for (int64_t column = 0; column < g.width; ++column)
      for (int64_t c = 0; c < g.channels; ++c) {
        const int64_t shown = g.flip ? g.width - 1 - column : column;
        const int64_t y = pixel_beyond(g.mirrored, row + g.top - g.pad, g.height);
        const int64_t x = pixel_beyond(g.mirrored, shown + g.left - g.pad, g.width);
        const bool black = y < 0 || x < 0;
        const uint8_t byte = black ? uint8_t{0} : image[(y * g.width + x) * g.channels + c];
        const auto i = static_cast<size_t>(c);
        out.push_back(normalize_image(byte, mean[i], std[i]));
      }
  return out;
}

}  // namespace lockstep::reference
