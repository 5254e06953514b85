// Specification of kernels/image/normalize_image.h for one image, NHWC.
#pragma once

#include <vector>

#include "tests/reference/normalize_image.h"

namespace lockstep::reference {

struct CropFlipNormalizeGeometry {
  int64_t channels, height, width, pad;
  int64_t top, left;  // of the crop in the padded image
  bool flip;
};

// mean, std: a value per channel.
inline std::vector<float> crop_flip_normalize(const uint8_t* image,
                                              const CropFlipNormalizeGeometry& g,
                                              const std::vector<float>& mean,
                                              const std::vector<float>& std) {
  std::vector<float> out;
  for (int64_t row = 0; row < g.height; ++row)
    for (int64_t column = 0; column < g.width; ++column)
      for (int64_t c = 0; c < g.channels; ++c) {
        const int64_t y = row + g.top - g.pad;
        const int64_t x = (g.flip ? g.width - 1 - column : column) + g.left - g.pad;
        const bool black = y < 0 || y >= g.height || x < 0 || x >= g.width;
        const uint8_t byte = black ? uint8_t{0} : image[(y * g.width + x) * g.channels + c];
        const auto i = static_cast<size_t>(c);
        out.push_back(normalize_image(byte, mean[i], std[i]));
      }
  return out;
}

}  // namespace lockstep::reference
