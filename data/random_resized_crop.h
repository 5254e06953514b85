// Draws the part of an image that training sees.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "core/region.h"
#include "data/codecs/image.h"
#include "data/random_region.h"

namespace lockstep::data {

// A random part with 8 to 100 % of the image's area and an aspect ratio from 3:4 to 4:3; the center
// if ten draws do not fit. Random: as draw_region().
// Source: torchvision.transforms.RandomResizedCrop.get_params, draw by draw.
template <class Random>
Region draw_resized_crop(const ImageSize& size, Random& random) {
  constexpr double kNarrowest = 3.0 / 4;
  constexpr double kWidest = 4.0 / 3;
  const RegionRange range = {.smallest = 0.08F,
                             .largest = 1,
                             .low = static_cast<float>(std::log(kNarrowest)),
                             .high = static_cast<float>(std::log(kWidest))};
  const auto size_of = [&](double area, double shape) -> std::optional<ImageSize> {
    const int64_t width = round_half_even(std::sqrt(area * shape));
    const int64_t height = round_half_even(std::sqrt(area / shape));
    if (width < 1 || width > size.width || height < 1 || height > size.height) return std::nullopt;
    return ImageSize{height, width};
  };
  if (const std::optional<Region> drawn = draw_region(size, range, random, size_of)) return *drawn;
  Region center = whole(size);
  const double shape = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (shape < kNarrowest) {
    center.height = round_half_even(static_cast<double>(size.width) / kNarrowest);
  } else if (shape > kWidest) {
    center.width = round_half_even(static_cast<double>(size.height) * kWidest);
  }
  center.top = (size.height - center.height) / 2;
  center.left = (size.width - center.width) / 2;
  return center;
}

}  // namespace lockstep::data
