#include "engine/step/draw_mix.h"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace lockstep::trainers::draw_mix_test {
namespace {

class DrawMix : public ::testing::TestWithParam<double> {};

// Beta(a, a) has mean 1/2, variance 1 / (4 (2a + 1)) and fourth central moment 3 / (16 (2a + 1) (2a
// + 3)). The bounds are five standard errors.
TEST_P(DrawMix, HasTheMomentsOfBeta) {
  const double a = GetParam();
  constexpr int kDraws = 20000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  for (int batch = 0; batch < kDraws; ++batch) {
    const double x = draw_mix(a, 3, 1, batch) - 0.5;
    ASSERT_LE(std::abs(x), 0.5);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  const double variance = 1 / (4 * (2 * a + 1));
  const double fourth = 3 / (16 * (2 * a + 1) * (2 * a + 3));
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(squares / kDraws, variance, 5 * std::sqrt(fourth / kDraws));
  EXPECT_NEAR(fourths / kDraws, fourth, 5 * std::sqrt(fourth / 16 / kDraws));
}
INSTANTIATE_TEST_SUITE_P(Alphas, DrawMix, ::testing::Values(0.2, 0.4, 1.0, 8.0));

TEST(DrawMixStreams, DifferBySeedEpochAndBatch) {
  std::set<float> drawn;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      for (int64_t batch = 0; batch < 3; ++batch) drawn.insert(draw_mix(1, seed, epoch, batch));
    }
  }
  EXPECT_EQ(drawn.size(), 27U);
  EXPECT_EQ(draw_mix(0.2, 1, 2, 3), draw_mix(0.2, 1, 2, 3));
}

// For a tiny alpha a gamma variate would be 0. Then the result is the image itself or its partner.
TEST(DrawMixStreams, OfATinyAlphaAreOneOrZero) {
  std::set<float> drawn;
  for (int64_t batch = 0; batch < 100; ++batch) drawn.insert(draw_mix(1e-6, 1, 0, batch));
  EXPECT_EQ(drawn, (std::set<float>{0, 1}));
}

TEST(CutMix, CutsTorchvisionsBoxes) {
  int boxes = 0;
  for (const testing::GoldenCase& golden : testing::golden_cases("image_boxes")) {
    if (!golden.name().starts_with("cut_")) continue;
    const auto whole = [&](const char* name) { return static_cast<int64_t>(golden.number(name)); };
    const CutMix cut = cut_mix({7, 9}, golden.number("share"), whole("x"), whole("y"));
    EXPECT_EQ(cut.box, (Region{whole("top"), whole("left"), whole("height"), whole("width")}))
        << golden.name();
    EXPECT_NEAR(cut.mix, *golden.tensor("mix").data<float>(), 1e-6);
    ++boxes;
  }
  EXPECT_GE(boxes, 5);
}

// Boxes begin at every position, lie within the image, and their area determines `mix`.
TEST(CutMix, DrawsBoxesFromTheWholeImage) {
  std::set<int64_t> tops, lefts;
  for (int64_t batch = 0; batch < 5000; ++batch) {
    const CutMix cut = draw_cut_mix(1, {12, 10}, 3, 1, batch);
    ASSERT_GE(cut.box.top, 0);
    ASSERT_GE(cut.box.left, 0);
    ASSERT_LE(cut.box.top + cut.box.height, 12);
    ASSERT_LE(cut.box.left + cut.box.width, 10);
    ASSERT_FLOAT_EQ(cut.mix, 1 - static_cast<float>(cut.box.height * cut.box.width) / 120);
    tops.insert(cut.box.top);
    lefts.insert(cut.box.left);
  }
  EXPECT_EQ(tops.size(), 12U);
  EXPECT_EQ(lefts.size(), 10U);
}

TEST(CutMix, AndMixupHaveEveryOtherMicroStepWhereARunHasBoth) {
  int cut = 0;
  for (int64_t batch = 0; batch < 2000; ++batch) cut += draw_whether_cut(1, 2, batch) ? 1 : 0;
  EXPECT_NEAR(cut, 1000, 112);  // 5 standard deviations
}

}  // namespace
}  // namespace lockstep::trainers::draw_mix_test
