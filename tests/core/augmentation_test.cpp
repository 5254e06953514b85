#include "core/augmentation.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace lockstep::augmentation_test {
namespace {

// The same for ever: resumed runs depend on it. Computed by a second program.
TEST(DrawCropFlip, IsPinned) {
  const auto draw = [](uint64_t seed, int64_t epoch, int64_t image) {
    return draw_crop_flip({.pad = 4, .flip = Flip::kRandom, .seed = seed}, epoch, image);
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
    const Augmentation augmentation{.pad = 4, .flip = Flip::kRandom, .seed = 7};
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

// Epoch 0 is that of random flips, and crops are theirs in every epoch.
TEST(DrawCropFlip, AlternatingFlipsShowTheOtherSideInEachEpoch) {
  const Augmentation random{.pad = 4, .flip = Flip::kRandom, .seed = 7};
  const Augmentation alternating{.pad = 4, .flip = Flip::kAlternating, .seed = 7};
  int flipped = 0;
  for (int64_t image = 0; image < 1000; ++image) {
    const bool first = draw_crop_flip(random, 0, image).flip;
    flipped += first ? 1 : 0;
    for (const int64_t epoch : {0, 1, 2, 3, 17, 200}) {
      CropFlip want = draw_crop_flip(random, epoch, image);
      want.flip = epoch % 2 == 0 ? first : !first;
      ASSERT_EQ(draw_crop_flip(alternating, epoch, image), want) << epoch << " " << image;
    }
  }
  EXPECT_NEAR(flipped, 500, 80);  // 5 standard deviations
}

// torch.nn.functional.pad(torch.arange(5.)[None], (2, 2), mode), of PyTorch 2.15.0.
TEST(PixelAt, PadsAsTorch) {
  std::array<int, 9> mirrored{}, black{};
  for (int i = 0; i < 9; ++i) {
    mirrored.at(static_cast<size_t>(i)) = pixel_at(PadMode::kReflect, i - 2, 5);
    black.at(static_cast<size_t>(i)) = pixel_at(PadMode::kZero, i - 2, 5);
  }
  EXPECT_EQ(mirrored, (std::array{2, 1, 0, 1, 2, 3, 4, 3, 2}));
  EXPECT_EQ(black, (std::array{-1, -1, 0, 1, 2, 3, 4, -1, -1}));
  EXPECT_TRUE(pad_fits({.pad = 4}, 4, 9));
  EXPECT_FALSE(pad_fits({.pad = 4, .pad_mode = PadMode::kReflect}, 4, 9));
  EXPECT_TRUE(pad_fits({.pad = 3, .pad_mode = PadMode::kReflect}, 9, 4));
  EXPECT_FALSE(pad_fits({.pad = -1}, 4, 9));
}

TEST(DrawCropFlip, NothingUnlessAskedFor) {
  EXPECT_FALSE(Augmentation{}.changes_images());
  EXPECT_TRUE((Augmentation{.pad = 1}).changes_images());
  EXPECT_TRUE((Augmentation{.flip = Flip::kRandom}).changes_images());
  for (int64_t image = 0; image < 100; ++image) {
    EXPECT_EQ(draw_crop_flip({.pad = 0, .flip = Flip::kNone}, 0, image), CropFlip{});
    EXPECT_FALSE(draw_crop_flip({.pad = 4, .flip = Flip::kNone}, 0, image).flip);
  }
}

}  // namespace
}  // namespace lockstep::augmentation_test
