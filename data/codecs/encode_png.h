// Encodes pixels as a PNG file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/codecs/image.h"

namespace lockstep::data {

// The bytes of a PNG of 8 bits per channel, gray or color; none in a build without libpng.
// Requires: 1 or 3 channels, pixels of that size, HWC.
std::string encode_png(const ImageSize& size, int64_t channels, std::string_view pixels);

}  // namespace lockstep::data
