// Draws the part of an image that is erased.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/augmentation.h"
#include "data/codecs/image.h"

namespace lockstep::data {

// A box of 2 to 33 % of the image's area, 0.3 to 3.3 times as high as wide, less high and wide than
// the image; empty where ten draws do not fit. Random: as draw_resized_crop().
// Source: torchvision.transforms.RandomErasing.get_params, draw by draw.
template <class Random>
PixelBox draw_erased_box(const ImageSize& size, Random& random) {
  const double area = static_cast<double>(size.height * size.width);
  const float low = std::log(0.3F);
  const float high = std::log(3.3F);
  const auto whole_number = [](double x) { return static_cast<int64_t>(std::nearbyint(x)); };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * static_cast<double>(random.uniform(0.02F, 0.33F));
    const auto ratio = static_cast<double>(std::exp(random.uniform(low, high)));
    const int64_t height = whole_number(std::sqrt(target * ratio));
    const int64_t width = whole_number(std::sqrt(target / ratio));
    if (height >= size.height || width >= size.width) continue;
    const int64_t top = random.below(size.height - height + 1);
    const int64_t left = random.below(size.width - width + 1);
    return {.top = top, .left = left, .height = height, .width = width};
  }
  return {};
}

}  // namespace lockstep::data
