// Decoded images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/region.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;

  bool operator==(const ImageSize& other) const = default;
};

inline Region whole(const ImageSize& size) {
  return {.height = size.height, .width = size.width};
}

// The pixels of one region of an image: HWC, 8-bit RGB.
struct Image {
  Region region;
  std::vector<uint8_t> pixels;

  // The first byte of row `y`, which counts from the top of the whole image. Requires: y within the
  // region.
  uint8_t* row(int64_t y) {
    return pixels.data() + static_cast<size_t>((y - region.top) * region.width * 3);
  }
  const uint8_t* row(int64_t y) const { return const_cast<Image*>(this)->row(y); }
};

// How values between pixels are interpolated.
enum class Interpolation : uint8_t { kBilinear, kBicubic };

}  // namespace lockstep::data
#pragma GCC visibility pop
