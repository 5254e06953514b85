#include "data/rand_augment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "data/image_random.h"
#include "tests/support/golden.h"

namespace lockstep::data::rand_augment_test {
namespace {

using Bytes = std::vector<uint8_t>;

class RandOps : public ::testing::TestWithParam<size_t> {};

void expect_pixels(const testing::GoldenCase& golden, PhotoOp op, bool increasing) {
  const Tensor image = golden.tensor("image");
  int seen = 0;
  for (const double level : {0.0, 3.3, 7.0, 10.0}) {
    for (const bool negative : {false, true}) {
      for (const bool bicubic : {false, true}) {
        const std::string name =
            fmt::format("{:g}{}{}", level, negative ? "n" : "p", bicubic ? "c" : "l");
        if (!golden.has(name)) continue;
        const std::span<const uint8_t> from = image.span<uint8_t>();
        Bytes got(from.begin(), from.end());
        RandChange what = rand_change(op, level, increasing, negative);
        what.bicubic = bicubic;
        change(what, {10, 13}, got);
        const Tensor want = golden.tensor(name);
        EXPECT_TRUE(std::ranges::equal(got, want.span<uint8_t>())) << golden.name() << name;
        ++seen;
      }
    }
  }
  EXPECT_GE(seen, 4);
}

TEST_P(RandOps, HaveTimmsPixels) {
  const PhotoOp op = kRandOps.at(GetParam()).op;
  const std::string name(kRandOps.at(GetParam()).name);
  expect_pixels(testing::golden_case("rand_augment", name), op, false);
  const bool has_increasing = op >= PhotoOp::kBrightness && op <= PhotoOp::kSolarize;
  if (!has_increasing) return;
  expect_pixels(testing::golden_case("rand_augment", name + "Increasing"), op, true);
}
INSTANTIATE_TEST_SUITE_P(All,
                         RandOps,
                         ::testing::Range(size_t{0}, kRandOps.size()),
                         [](const auto& op) { return std::string(kRandOps[op.param].name); });

// timm returns the image for 8 bits or more; Pillow keeps nothing for fewer than 0.
TEST(RandAugment, PosterizesWithAnyNumberOfBits) {
  for (const auto& [level, increasing, kept] :
       {std::tuple(30.0, false, 0xFF), {200.0, false, 0xFF}, {30.0, true, 0}, {200.0, true, 0}}) {
    Bytes pixels(300);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i);
    Bytes want = pixels;
    for (uint8_t& value : want) value = static_cast<uint8_t>(value & kept);
    change(rand_change(PhotoOp::kPosterize, level, increasing, false), {10, 10}, pixels);
    EXPECT_EQ(pixels, want) << level;
  }
}

TEST(RandAugment, LeavesNoPixelUnwrittenInImagesOfAnyShape) {
  for (const ImageSize& size : {ImageSize{1, 1}, {1, 9}, {9, 1}, {2, 3}}) {
    for (const NamedPhotoOp& each : kRandOps) {
      for (const bool bicubic : {false, true}) {
        RandChange what = rand_change(each.op, 10, true, true);
        what.bicubic = bicubic;
        Bytes flat(static_cast<size_t>(size.height * size.width * 3), 100);
        change(what, size, flat);
        EXPECT_EQ(std::ssize(flat), size.height * size.width * 3);
      }
    }
  }
}

struct Drawn {
  std::map<PhotoOp, int> ops;
  std::vector<double> rotations;
  int applied = 0;
};

Drawn draw(const lockstep::RandAugment& policy, int images) {
  Drawn drawn;
  for (int64_t image = 0; image < images; ++image) {
    ImageRandom random(1, RandomPurpose::kRandAugment, 2, image);
    RandChange what;
    drawn.applied += draw_rand_change(policy, random, what) ? 1 : 0;
    ++drawn.ops[what.op];
    if (what.op == PhotoOp::kRotate) drawn.rotations.push_back(what.argument);
  }
  return drawn;
}

TEST(RandAugment, DrawsEveryOpInBothDirectionsAsOftenAsAskedFor) {
  constexpr int kImages = 30000;
  const Drawn drawn = draw({.layers = 1, .magnitude = 7, .probability = 0.25}, kImages);
  ASSERT_EQ(drawn.ops.size(), kRandOps.size());
  for (const auto& [op, count] : drawn.ops) EXPECT_NEAR(count, 2000, 5 * std::sqrt(2000.0));
  EXPECT_NEAR(drawn.applied, 7500, 5 * std::sqrt(7500.0));
  const std::set<double> angles(drawn.rotations.begin(), drawn.rotations.end());
  EXPECT_EQ(angles.size(), 2U) << "no deviation was asked for";
  EXPECT_DOUBLE_EQ(*angles.rbegin(), 21);
  EXPECT_DOUBLE_EQ(*angles.begin(), -21);
}

TEST(RandAugment, TheMagnitudeIsNormalOrUniformAndLimited) {
  const auto levels = [](const lockstep::RandAugment& policy) {
    std::vector<double> found = draw(policy, 30000).rotations;
    for (double& angle : found) angle = std::abs(angle) / 3;
    std::ranges::sort(found);
    return found;
  };
  const auto of_normal = levels({.layers = 1, .magnitude = 5, .deviation = 1});
  const auto quantile = [](const std::vector<double>& sorted, double part) {
    return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size()))];
  };
  EXPECT_NEAR(quantile(of_normal, 0.5), 5, 0.15);
  EXPECT_NEAR(quantile(of_normal, 0.1587), 4, 0.2);
  EXPECT_NEAR(quantile(of_normal, 0.8413), 6, 0.2);
  const auto of_uniform = levels({.layers = 1, .magnitude = 8, .uniform = true});
  EXPECT_NEAR(quantile(of_uniform, 0.25), 2, 0.3);
  EXPECT_NEAR(quantile(of_uniform, 0.75), 6, 0.3);
  EXPECT_LE(of_uniform.back(), 8);
  const auto limited = levels({.layers = 1, .magnitude = 10, .deviation = 5});
  EXPECT_DOUBLE_EQ(limited.back(), 10);
  EXPECT_GT(levels({.layers = 1, .magnitude = 10, .deviation = 5, .most = 15}).back(), 10);
}

}  // namespace
}  // namespace lockstep::data::rand_augment_test
