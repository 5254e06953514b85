#include "data/augment.h"

#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::data {
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

// The same for ever: resumed runs depend on it. Computed by a second program.
TEST(DrawCropFlip, IsPinned) {
  const auto draw = [](uint64_t seed, int64_t epoch, int64_t image) {
    return draw_crop_flip({.pad = 4, .flip = true, .seed = seed}, epoch, image);
  };
  EXPECT_EQ(draw(0, 0, 0), (CropFlip{6, 4, false}));
  EXPECT_EQ(draw(0, 0, 1), (CropFlip{0, 0, false}));
  EXPECT_EQ(draw(0, 1, 0), (CropFlip{6, 5, false}));
  EXPECT_EQ(draw(1, 0, 0), (CropFlip{0, 8, true}));
  EXPECT_EQ(draw(42, 3, 49999), (CropFlip{8, 0, false}));
  EXPECT_EQ(draw(uint64_t{1} << 40, 299, 1281166), (CropFlip{7, 2, false}));
}

TEST(DrawCropFlip, EveryOffsetIsEquallyLikely) {
  constexpr int kDraws = 9000;
  std::array<int, 9> top{};
  std::array<int, 9> left{};
  std::array<std::array<int, 2>, 2> flips{};  // by the image's flip in this epoch and the next
  std::set<std::array<int64_t, 3>> all;
  for (int64_t image = 0; image < kDraws; ++image) {
    const Augmentation augmentation{.pad = 4, .flip = true, .seed = 7};
    const CropFlip now = draw_crop_flip(augmentation, 5, image);
    const CropFlip next = draw_crop_flip(augmentation, 6, image);
    ++top.at(static_cast<size_t>(now.top));
    ++left.at(static_cast<size_t>(now.left));
    ++flips.at(now.flip ? 1 : 0).at(next.flip ? 1 : 0);
    all.insert({now.top, now.left, now.flip ? 1 : 0});
  }
  for (const int count : top) EXPECT_NEAR(count, kDraws / 9, 150);  // 5 standard deviations
  for (const int count : left) EXPECT_NEAR(count, kDraws / 9, 150);
  for (const auto& row : flips) {
    for (const int count : row) EXPECT_NEAR(count, kDraws / 4, 205);
  }
  EXPECT_EQ(all.size(), 162U);
}

TEST(DrawCropFlip, NothingUnlessAskedFor) {
  EXPECT_FALSE(Augmentation{}.changes_images());
  EXPECT_TRUE((Augmentation{.pad = 1}).changes_images());
  EXPECT_TRUE((Augmentation{.flip = true}).changes_images());
  for (int64_t image = 0; image < 100; ++image) {
    EXPECT_EQ(draw_crop_flip({.pad = 0, .flip = false}, 0, image), CropFlip{});
    EXPECT_FALSE(draw_crop_flip({.pad = 4, .flip = false}, 0, image).flip);
  }
}

}  // namespace
}  // namespace lockstep::data
