#include "data/random_resized_crop.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/data/torch_random.h"

namespace lockstep::data::random_resized_crop_test {
namespace {

using testing::TorchRandom;

// torch.manual_seed(0), RandomResizedCrop.get_params(image, (.08, 1), (3/4, 4/3)).
TEST(RandomResizedCrop, DrawsAsTorchvision) {
  TorchRandom random(0);
  const std::vector<Region> want = {
      {17, 80, 294, 343}, {52, 183, 251, 271}, {26, 182, 295, 318}, {28, 56, 151, 125}};
  for (const Region& region : want) EXPECT_EQ(draw_resized_crop({375, 500}, random), region);
}

TEST(RandomResizedCrop, StaysInTheImage) {
  TorchRandom random(1);
  for (const ImageSize& size : {ImageSize{1, 1}, {1, 500}, {500, 1}, {3, 2}, {375, 500}}) {
    for (int i = 0; i < 200; ++i) {
      const Region region = draw_resized_crop(size, random);
      EXPECT_GE(region.top, 0);
      EXPECT_GE(region.left, 0);
      EXPECT_GE(region.height, 1);
      EXPECT_GE(region.width, 1);
      EXPECT_LE(region.top + region.height, size.height);
      EXPECT_LE(region.left + region.width, size.width);
    }
  }
}

// As torchvision's fallback: the center, as wide or high as the ratio allows.
TEST(RandomResizedCrop, FallsBackToTheCenter) {
  struct Never {
    float uniform(float, float high) { return high; }
    int64_t below(int64_t) { return 0; }
  } random;
  EXPECT_EQ(draw_resized_crop({1000, 30}, random), (Region{480, 0, 40, 30}));
  EXPECT_EQ(draw_resized_crop({30, 1000}, random), (Region{0, 480, 30, 40}));
}

}  // namespace
}  // namespace lockstep::data::random_resized_crop_test
