// Draws the part of an image that is erased.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "core/region.h"
#include "data/codecs/image.h"
#include "data/random_region.h"

namespace lockstep::data {

// A box with 2 to 33 % of the image's area, 0.3 to 3.3 times as high as wide, and smaller than the
// image in both directions; empty if ten draws do not fit. Random: as draw_region().
// Source: torchvision.transforms.RandomErasing.get_params, draw by draw.
template <class Random>
Region draw_erased_box(const ImageSize& size, Random& random) {
  const RegionRange range = {
      .smallest = 0.02F, .largest = 0.33F, .low = std::log(0.3F), .high = std::log(3.3F)};
  const auto size_of = [&](double area, double shape) -> std::optional<ImageSize> {
    const int64_t height = round_half_even(std::sqrt(area * shape));
    const int64_t width = round_half_even(std::sqrt(area / shape));
    if (height >= size.height || width >= size.width) return std::nullopt;
    return ImageSize{height, width};
  };
  return draw_region(size, range, random, size_of).value_or(Region{});
}

// A square of `side` pixels within the image, where all positions are equally likely; clipped to
// the image's size. Random: int64_t below(int64_t n).
// Source: airbench96's batch_cutout, github.com/KellerJordan/cifar10-airbench.
template <class Random>
Region draw_cutout_box(int64_t side, const ImageSize& size, Random& random) {
  const int64_t height = std::min(side, size.height);
  const int64_t width = std::min(side, size.width);
  const int64_t top = random.below(size.height - height + 1);
  const int64_t left = random.below(size.width - width + 1);
  return {.top = top, .left = left, .height = height, .width = width};
}

}  // namespace lockstep::data
