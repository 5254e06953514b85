// Draws the part of an image that training sees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/philox.h"
#include "data/codecs/image.h"

namespace lockstep::data {

// A part of 8 to 100 % of the image's area, 3:4 to 4:3 in shape, anywhere in it; where ten draws
// do not fit, the center. Random: float uniform(float low, float high); int64_t below(int64_t n).
// Source: torchvision.transforms.RandomResizedCrop.get_params, draw by draw.
template <class Random>
Region draw_resized_crop(const ImageSize& size, Random& random) {
  constexpr double kNarrowest = 3.0 / 4;
  constexpr double kWidest = 4.0 / 3;
  const double area = static_cast<double>(size.height * size.width);
  const auto whole_number = [](double x) { return static_cast<int64_t>(std::nearbyint(x)); };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * static_cast<double>(random.uniform(0.08F, 1));
    const auto low = static_cast<float>(std::log(kNarrowest));
    const auto high = static_cast<float>(std::log(kWidest));
    const auto ratio = static_cast<double>(std::exp(random.uniform(low, high)));
    const int64_t width = whole_number(std::sqrt(target * ratio));
    const int64_t height = whole_number(std::sqrt(target / ratio));
    if (width < 1 || width > size.width || height < 1 || height > size.height) continue;
    const int64_t top = random.below(size.height - height + 1);
    const int64_t left = random.below(size.width - width + 1);
    return {.top = top, .left = left, .height = height, .width = width};
  }
  Region center = whole(size);
  const double shape = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (shape < kNarrowest) {
    center.height = whole_number(static_cast<double>(size.width) / kNarrowest);
  } else if (shape > kWidest) {
    center.width = whole_number(static_cast<double>(size.height) * kWidest);
  }
  center.top = (size.height - center.height) / 2;
  center.left = (size.width - center.width) / 2;
  return center;
}

}  // namespace lockstep::data
