// Steps in which batch normalization gets only one value per channel are refused before the first
// step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "tests/trainers/options_of.h"
#include "trainers/model/models.h"

namespace lockstep::trainers::batch_norm_check_test {
namespace {

using ::testing::HasSubstr;
using testing::usage_error;

constexpr data::ImageShape kImage{1, 28, 28};
// Its last batch norm follows a dense layer: one value per image and channel.
const ModelOptions kToyNet{.arch = "toy_net", .image = kImage};
// Its last batch norm sees 14 x 14 pixels.
const ModelOptions kConvNet{.arch = "convnet", .image = kImage};

BatchDivision cut(int64_t images, int64_t groups = 1, int64_t micro_steps = 1) {
  return {.images = images, .micro_steps = micro_steps, .bn_groups = groups};
}

void check(const BatchDivision& batch,
           const ModelOptions& model,
           int64_t images,
           std::optional<int64_t> max_steps = {}) {
  check_batch_norm(batch, max_steps, model, images);
}

TEST(BatchNormCheck, RefusesALastStepOfOneImageWithTheNumbers) {
  const auto error = usage_error([] { check(cut(64), kToyNet, 129); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("one image"));
  EXPECT_THAT(error->why(), HasSubstr("129 images in steps of 64, dealt to 1 group:"));
  EXPECT_NO_THROW(check(cut(64), kToyNet, 130));
  EXPECT_NO_THROW(check(cut(64), kToyNet, 128));
}

TEST(BatchNormCheck, LargerMapsMayHaveOneImage) {
  EXPECT_NO_THROW(check(cut(64), kConvNet, 129));
}

TEST(BatchNormCheck, CountsAGroupsPartOfAMicroStep) {
  EXPECT_TRUE(usage_error([] { check(cut(8, 8), kToyNet, 128); }));
  EXPECT_TRUE(usage_error([] { check(cut(8, 2, 4), kToyNet, 128); }));
  EXPECT_NO_THROW(check(cut(16, 8), kToyNet, 128));
  EXPECT_TRUE(usage_error([] { check(cut(16, 2), kToyNet, 130); }));
}

TEST(BatchNormCheck, ALastStepThatIsNeverReachedDoesNotMatter) {
  EXPECT_NO_THROW(check(cut(64), kToyNet, 129, 2));
  EXPECT_TRUE(usage_error([&] { check(cut(64), kToyNet, 129, 3); }));
}

TEST(ClassCheck, RefusesLabelsThatTheNetworkHasNoOutputFor) {
  const data::Synthetic ten({.images = 4, .classes = 10, .shape = kImage});
  EXPECT_NO_THROW(check_classes(kConvNet, ten));
  ModelOptions few = kConvNet;
  few.classes = 9;
  const auto error = usage_error([&] { check_classes(few, ten); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("--num-classes 9 is too few"));
  EXPECT_THAT(error->why(), HasSubstr("0 to 9"));
}

}  // namespace
}  // namespace lockstep::trainers::batch_norm_check_test
