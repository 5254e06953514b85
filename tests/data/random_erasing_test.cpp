#include "data/random_erasing.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "data/image_random.h"
#include "tests/data/torch_random.h"
#include "tests/support/golden.h"

namespace lockstep::data::random_erasing_test {
namespace {

using testing::GoldenCase;
using testing::TorchRandom;

TEST(RandomErasing, DrawsAsTorchvision) {
  int64_t drawn = 0, empty = 0;
  for (const GoldenCase& golden : testing::golden_cases("image_boxes")) {
    if (!golden.name().starts_with("erased_")) continue;
    const ImageSize size = {static_cast<int64_t>(golden.number("height")),
                            static_cast<int64_t>(golden.number("width"))};
    const Tensor boxes = golden.tensor("boxes");
    for (int64_t seed = 0; seed < boxes.shape()[0]; ++seed) {
      TorchRandom random(static_cast<uint64_t>(seed));
      const int32_t* const want = boxes.data<int32_t>() + 4 * seed;
      EXPECT_EQ(draw_erased_box(size, random), (Region{want[0], want[1], want[2], want[3]}))
          << golden.name() << ", seed " << seed;
      empty += want[2] == 0 ? 1 : 0;
    }
    drawn += boxes.shape()[0];
  }
  EXPECT_EQ(drawn, 36) << "of three sizes";
  EXPECT_LT(empty, 6);
}

TEST(RandomErasing, StaysInTheImageOrErasesNothing) {
  for (const ImageSize& size : {ImageSize{1, 1}, {1, 500}, {3, 2}, {28, 28}, {375, 500}}) {
    for (int64_t image = 0; image < 200; ++image) {
      ImageRandom random(1, RandomPurpose::kErase, 0, image);
      const Region box = draw_erased_box(size, random);
      EXPECT_GE(box.top, 0);
      EXPECT_GE(box.left, 0);
      EXPECT_LE(box.top + box.height, size.height);
      EXPECT_LE(box.left + box.width, size.width);
      EXPECT_LT(box.height * box.width, size.height * size.width);
    }
  }
}

// torchvision's fallback: the image as it is.
TEST(RandomErasing, GivesUpAfterTenAttempts) {
  struct Wide {
    float uniform(float, float high) { return ++draws, high; }
    int64_t below(int64_t) { return 0; }
    int draws = 0;
  } random;
  EXPECT_EQ(draw_erased_box({2, 500}, random), Region{});
  EXPECT_EQ(random.draws, 20);
}

TEST(Cutout, EachPlaceInTheImageIsAsLikely) {
  constexpr int64_t kImages = 5000;
  std::array<int, 25> seen{};
  for (int64_t image = 0; image < kImages; ++image) {
    ImageRandom random(1, RandomPurpose::kErase, 0, image);
    const Region box = draw_cutout_box(12, {16, 16}, random);
    ASSERT_EQ(box.height, 12);
    ASSERT_EQ(box.width, 12);
    ASSERT_TRUE(box.top >= 0 && box.top <= 4 && box.left >= 0 && box.left <= 4);
    ++seen[static_cast<size_t>(box.top * 5 + box.left)];
  }
  // A 25th, within five standard deviations.
  for (const int count : seen) EXPECT_NEAR(count, 200, 5 * std::sqrt(200 * 0.96));
}

TEST(Cutout, IsAsLargeAsTheImageAtMost) {
  ImageRandom random(1, RandomPurpose::kErase, 0, 0);
  EXPECT_EQ(draw_cutout_box(12, {8, 12}, random), (Region{0, 0, 8, 12}));
}

}  // namespace
}  // namespace lockstep::data::random_erasing_test
