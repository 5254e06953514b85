#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "data/dataset.h"
#include "tests/support/golden.h"

namespace lockstep::data::augment_test {
namespace {

using testing::golden_cases;
using testing::GoldenCase;
using Bytes = std::vector<uint8_t>;

// Pixels with a value of their own, none of them 0.
Bytes numbered(const ImageShape& shape) {
  Bytes pixels(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(1 + i % 251);
  return pixels;
}

Bytes changed(const ImageShape& shape, const Augmentation& padding, const CropFlip& change) {
  Bytes out(static_cast<size_t>(shape.numel()), 255);
  crop_flip(shape, padding, change, numbered(shape), out);
  return out;
}

// A line of pixel numbers with `pad` more on each side: -1 for black, or a walk that turns round at
// both ends.
std::vector<int64_t> padded_line(int64_t size, const Augmentation& padding) {
  std::vector<int64_t> line;
  for (int64_t i = 0; i < size; ++i) line.push_back(i);
  for (int64_t i = 1; i <= padding.pad; ++i) {
    const bool mirrored = padding.pad_mode == PadMode::kReflect;
    line.insert(line.begin(), mirrored ? i : -1);
    line.push_back(mirrored ? size - 1 - i : -1);
  }
  return line;
}

// The definition, pixel by pixel: pad, crop, flip.
Bytes expected(const ImageShape& shape, const Augmentation& padding, const CropFlip& change) {
  const Bytes in = numbered(shape);
  const int64_t h = shape.height;
  const int64_t w = shape.width;
  const std::vector<int64_t> rows = padded_line(h, padding);
  const std::vector<int64_t> columns = padded_line(w, padding);
  Bytes out;
  for (int64_t row = 0; row < h; ++row) {
    for (int64_t column = 0; column < w; ++column) {
      const int64_t y = rows[static_cast<size_t>(row + change.top)];
      const int64_t shown = change.flip ? w - 1 - column : column;
      const int64_t x = columns[static_cast<size_t>(shown + change.left)];
      for (int64_t c = 0; c < shape.channels; ++c) {
        const bool black = y < 0 || x < 0;
        out.push_back(black ? 0 : in[static_cast<size_t>((y * w + x) * shape.channels + c)]);
      }
    }
  }
  return out;
}

void expect_every_crop(const ImageShape& shape, const Augmentation& padding) {
  for (int64_t top = 0; top <= 2 * padding.pad; ++top) {
    for (int64_t left = 0; left <= 2 * padding.pad; ++left) {
      for (const bool flip : {false, true}) {
        const CropFlip change{.top = top, .left = left, .flip = flip};
        EXPECT_EQ(changed(shape, padding, change), expected(shape, padding, change))
            << shape.height << " x " << shape.width << ": " << top << ", " << left << flip;
      }
    }
  }
}

TEST(CropFlip, IsACropOfThePaddedImage) {
  for (const ImageShape& shape : {ImageShape{3, 6, 7}, {1, 5, 4}, {3, 4, 4}, {4, 9, 5}}) {
    for (const int64_t pad : {0, 1, 4}) expect_every_crop(shape, {.pad = pad});
    for (const int64_t pad : {0, 1, 3}) {
      expect_every_crop(shape, {.pad = pad, .pad_mode = PadMode::kReflect});
    }
  }
}

TEST(CropFlip, HasTorchsPixels) {
  int crops = 0;
  for (const GoldenCase& golden : golden_cases("image_views")) {
    if (!golden.has("crop")) continue;
    ++crops;
    SCOPED_TRACE(golden.name());
    const auto whole = [&](const char* name) { return static_cast<int64_t>(golden.number(name)); };
    const Augmentation padding{
        .pad = whole("pad"),
        .pad_mode = whole("reflect") != 0 ? PadMode::kReflect : PadMode::kZero};
    const CropFlip change{.top = whole("top"), .left = whole("left"), .flip = whole("flip") != 0};
    const Tensor images = golden.tensor("images"), want = golden.tensor("crop");
    for (int64_t n = 0; n < images.shape()[0]; ++n) {
      Bytes got(60);
      crop_flip({2, 5, 6}, padding, change, images.slice(n, 1).span<const uint8_t>(), got);
      EXPECT_TRUE(std::ranges::equal(got, want.slice(n, 1).span<const uint8_t>()));
    }
  }
  EXPECT_EQ(crops, 4);
}

TEST(CropFlip, TheMiddleCropIsTheImage) {
  const ImageShape shape{3, 32, 32};
  EXPECT_EQ(changed(shape, {.pad = 4}, {.top = 4, .left = 4}), numbered(shape));
}

}  // namespace
}  // namespace lockstep::data::augment_test
