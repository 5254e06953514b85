#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "trainers/loop/training_batches.h"

namespace lockstep::trainers::draw_mix_test {
namespace {

class DrawMix : public ::testing::TestWithParam<double> {};

// Beta(a, a) has mean 1/2, variance 1 / (4 (2a + 1)) and fourth central moment
// 3 / (16 (2a + 1) (2a + 3)). Bounds: five standard errors.
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

// Where a gamma variate would be 0: an image as it is, or its partner.
TEST(DrawMixStreams, OfATinyAlphaAreOneOrZero) {
  std::set<float> drawn;
  for (int64_t batch = 0; batch < 100; ++batch) drawn.insert(draw_mix(1e-6, 1, 0, batch));
  EXPECT_EQ(drawn, (std::set<float>{0, 1}));
}

}  // namespace
}  // namespace lockstep::trainers::draw_mix_test
