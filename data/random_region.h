// Draws a rectangle of an image by its area and its aspect ratio.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "core/region.h"
#include "data/codecs/image.h"

namespace lockstep::data {

struct RegionRange {
  float smallest;  // area, as a fraction of the image's
  float largest;
  float low;  // logarithm of the aspect ratio: height / width, or its inverse
  float high;
};

inline int64_t round_half_even(double x) {
  return static_cast<int64_t>(std::nearbyint(x));
}

// Takes the first of ten draws for which size_of(target area, aspect ratio) is a size that fits,
// and places it at random; nothing if none fits. size_of() returns an std::optional<ImageSize>,
// empty for a size that does not fit. Random: float uniform(float low, float high); int64_t
// below(int64_t n).
// Source: get_params of torchvision's RandomResizedCrop and RandomErasing, draw by draw.
template <class Random, class SizeOf>
std::optional<Region> draw_region(const ImageSize& image,
                                  const RegionRange& range,
                                  Random& random,
                                  SizeOf&& size_of) {
  const double area = static_cast<double>(image.height * image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * static_cast<double>(random.uniform(range.smallest, range.largest));
    const auto shape = static_cast<double>(std::exp(random.uniform(range.low, range.high)));
    const std::optional<ImageSize> size = size_of(target, shape);
    if (!size) continue;
    const int64_t top = random.below(image.height - size->height + 1);
    const int64_t left = random.below(image.width - size->width + 1);
    return Region{.top = top, .left = left, .height = size->height, .width = size->width};
  }
  return std::nullopt;
}

}  // namespace lockstep::data
