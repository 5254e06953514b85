#include <vector>

#include <gtest/gtest.h>

#include "data/dataset.h"

namespace lockstep::data::augment_test {
namespace {

using Bytes = std::vector<uint8_t>;

// Pixels with a value of their own, none of them 0.
Bytes numbered(const ImageShape& shape) {
  Bytes pixels(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(1 + i % 251);
  return pixels;
}

Bytes changed(const ImageShape& shape, int64_t pad, const CropFlip& change) {
  Bytes out(static_cast<size_t>(shape.numel()), 255);
  crop_flip(shape, pad, change, numbered(shape), out);
  return out;
}

// The definition, pixel by pixel: pad, crop, flip.
Bytes expected(const ImageShape& shape, int64_t pad, const CropFlip& change) {
  const Bytes in = numbered(shape);
  const int64_t h = shape.height;
  const int64_t w = shape.width;
  Bytes out;
  for (int64_t row = 0; row < h; ++row) {
    for (int64_t column = 0; column < w; ++column) {
      const int64_t y = row + change.top - pad;
      const int64_t x = (change.flip ? w - 1 - column : column) + change.left - pad;
      for (int64_t c = 0; c < shape.channels; ++c) {
        const bool black = y < 0 || y >= h || x < 0 || x >= w;
        out.push_back(black ? 0 : in[static_cast<size_t>((y * w + x) * shape.channels + c)]);
      }
    }
  }
  return out;
}

TEST(CropFlip, IsACropOfThePaddedImage) {
  for (const ImageShape& shape : {ImageShape{3, 6, 7}, {1, 5, 4}, {3, 4, 4}, {4, 9, 5}}) {
    for (const int64_t pad : {0, 1, 4}) {
      for (int64_t top = 0; top <= 2 * pad; ++top) {
        for (int64_t left = 0; left <= 2 * pad; ++left) {
          for (const bool flip : {false, true}) {
            const CropFlip change{.top = top, .left = left, .flip = flip};
            EXPECT_EQ(changed(shape, pad, change), expected(shape, pad, change))
                << shape.height << " x " << shape.width << ": " << top << ", " << left << flip;
          }
        }
      }
    }
  }
}

TEST(CropFlip, TheMiddleCropIsTheImage) {
  const ImageShape shape{3, 32, 32};
  EXPECT_EQ(changed(shape, 4, {.top = 4, .left = 4}), numbered(shape));
}

}  // namespace
}  // namespace lockstep::data::augment_test
