#include "trainers/config/augmentation_config.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"
#include "trainers/loop/training_data.h"

namespace lockstep::trainers::augmentation_config_test {
namespace {

using ::testing::HasSubstr;
using testing::options_of;
using testing::usage_error;

// Stands in for a data set that is read from files.
class Named : public data::Synthetic {
 public:
  explicit Named(std::string name, int64_t side = 32)
      : Synthetic({.images = 1, .shape = {3, side, side}}), name_(std::move(name)) {}
  std::string name() const override { return name_; }

 private:
  std::string name_;
};

Augmentation of(const std::string& line, const data::Dataset& images) {
  return augmentation(
      make_augmentation_config(options_of(line, {}, Program::kTrainResnet)), 3, images);
}

TEST(AugmentationConfig, IsTheDataSetsUnlessAskedFor) {
  for (const char* name : {"cifar10/train", "shapes/train"}) {
    const Augmentation usual = of("", Named(name));
    EXPECT_EQ(usual.pad, 4);
    EXPECT_EQ(usual.pad_mode, PadMode::kZero);
    EXPECT_EQ(usual.flip, Flip::kRandom);
    EXPECT_FALSE(usual.resized_crop);
    EXPECT_EQ(usual.seed, 3U);
  }
  const Augmentation photos = of("", Named("imagefolder/train"));
  EXPECT_EQ(photos.pad, 0);
  EXPECT_EQ(photos.flip, Flip::kRandom);
  EXPECT_TRUE(photos.resized_crop);
  for (const char* name : {"mnist/train", "fashion-mnist/train", "digits/train", "synthetic"}) {
    EXPECT_FALSE(of("", Named(name)).changes_images()) << name;
  }
}

TEST(AugmentationConfig, EachFlagWorksAlone) {
  const Named cifar10("cifar10/train");
  EXPECT_EQ(of("--flip alternating", cifar10).flip, Flip::kAlternating);
  EXPECT_EQ(of("--flip alternating", cifar10).pad, 4);
  EXPECT_EQ(of("--flip none", cifar10).flip, Flip::kNone);
  EXPECT_EQ(of("--crop-pad 2", cifar10).pad, 2);
  EXPECT_EQ(of("--crop-pad 2", cifar10).pad_mode, PadMode::kZero);
  EXPECT_EQ(of("--crop-pad 2", cifar10).flip, Flip::kRandom);
  EXPECT_EQ(of("--crop-pad-mode reflect", cifar10).pad_mode, PadMode::kReflect);
  EXPECT_EQ(of("--crop-pad-mode reflect", cifar10).pad, 4);
  EXPECT_FALSE(of("--crop-pad 0 --flip none", cifar10).changes_images());
  const Named mnist("mnist/train");
  EXPECT_EQ(of("--flip random", mnist).flip, Flip::kRandom);
  EXPECT_EQ(of("--flip random", mnist).pad, 0);
  EXPECT_EQ(of("--crop-pad 2 --crop-pad-mode reflect", mnist).pad_mode, PadMode::kReflect);
  const Named photos("imagefolder/train");
  EXPECT_EQ(of("--flip alternating", photos).flip, Flip::kAlternating);
  EXPECT_FALSE(of("", photos).trivial);
  EXPECT_TRUE(of("--auto-augment ta_wide", photos).trivial);
  EXPECT_FALSE(of("--auto-augment ta_wide", photos).bilinear);
  EXPECT_TRUE(of("--auto-augment ta_wide-bilinear", photos).trivial);
  EXPECT_TRUE(of("--auto-augment ta_wide-bilinear", photos).bilinear);
}

std::string refusal_of(const std::string& line, const data::Dataset& images) {
  const auto error = usage_error([&] { of(line, images); });
  return error ? fmt::format("{} | {} | {}", error->what(), error->why(), error->hint())
               : "accepted";
}

TEST(AugmentationConfig, RandAugmentIsSpelledAsTimmDoes) {
  const Named photos("imagefolder/train");
  EXPECT_EQ(of("", photos).rand.layers, 0);
  EXPECT_EQ(of("--aa ta_wide", photos).rand.layers, 0);
  const RandAugment usual = of("--aa rand", photos).rand;
  EXPECT_EQ(usual.layers, 2);
  EXPECT_EQ(usual.magnitude, 10);
  EXPECT_EQ(usual.deviation, 0);
  EXPECT_EQ(usual.probability, 0.5);
  EXPECT_FALSE(usual.increasing);
  const RandAugment all = of("--aa rand-m7-n3-p0.25-mstd0.5-mmax15-inc1", photos).rand;
  EXPECT_EQ(all.layers, 3);
  EXPECT_EQ(all.magnitude, 7);
  EXPECT_EQ(all.deviation, 0.5);
  EXPECT_FALSE(all.uniform);
  EXPECT_EQ(all.most, 15);
  EXPECT_EQ(all.probability, 0.25);
  EXPECT_TRUE(all.increasing);
  EXPECT_TRUE(of("--aa rand-mstd101", photos).rand.uniform);
  for (const char* bad : {"random",
                          "m7",
                          "rand-m",
                          "rand-m1.5",
                          "rand-n0",
                          "rand-n101",
                          "rand-p2",
                          "rand-x3",
                          "rand-tweights",
                          "rand-mmax0",
                          "augmix-m3",
                          "rand-7",
                          "rand-mstdinf"}) {
    EXPECT_THAT(refusal_of(fmt::format("--aa {}", bad), photos),
                HasSubstr("bad value: --auto-augment "))
        << bad;
  }
  EXPECT_THAT(refusal_of("--aa rand-m7", Named("shapes/train")), HasSubstr("is for photos"));
}

TEST(AugmentationConfig, WhatDoesNotFitTheImagesIsRefused) {
  const Named photos("imagefolder/train"), mnist("mnist/train"), small("shapes/train", 8);
  EXPECT_EQ(refusal_of("--crop-pad 4", photos),
            "--crop-pad is for images of one size | imagefolder/train has photos, and training "
            "sees a resized crop of each | leave it out");
  EXPECT_EQ(refusal_of("--crop-pad 0", photos), "accepted");
  EXPECT_THAT(refusal_of("--auto-augment ta_wide", small),
              HasSubstr("--auto-augment is for photos in class folders"));
  EXPECT_EQ(refusal_of("--crop-pad-mode reflect", photos),
            "--crop-pad-mode would change nothing | no crop of imagefolder/train reaches beyond "
            "its image | leave it out");
  EXPECT_THAT(refusal_of("--crop-pad-mode reflect", mnist), HasSubstr("would change nothing"));
  EXPECT_THAT(refusal_of("--crop-pad-mode zero --crop-pad 0", small),
              HasSubstr("would change nothing"));
  EXPECT_EQ(refusal_of("--crop-pad 8", small), "accepted");
  EXPECT_EQ(refusal_of("--crop-pad 9", small),
            "--crop-pad 9 is too much | the images of shapes/train are 8x8 | --crop-pad 8 or less");
  EXPECT_EQ(refusal_of("--crop-pad 8 --crop-pad-mode reflect", small),
            "--crop-pad 8 is too much | the images of shapes/train are 8x8 | --crop-pad 7 or less");
  EXPECT_EQ(refusal_of("--cutout 8", small), "accepted");
  EXPECT_EQ(
      refusal_of("--cutout 9", small),
      "--cutout 9 is too much | the shorter side of shapes/train has 8 pixels | --cutout 8 or "
      "less");
  EXPECT_EQ(refusal_of("--cutout 4 --random-erase 0.1", small),
            "--cutout and --random-erase do not go together | an image has one box that is erased "
            "| leave one of them out");
}

TEST(AugmentationConfig, IsCheckedWhereTheDataAreOpened) {
  const auto open = [](const std::string& line) {
    return usage_error([&] { open_training_data(make_run_request(options_of(line))); });
  };
  EXPECT_TRUE(open("--dummy --crop-pad-mode reflect"));
  EXPECT_FALSE(open("--dummy --crop-pad-mode reflect --crop-pad 2"));
  EXPECT_FALSE(open("--dummy --crop-pad-mode reflect -e --pretrained F"))
      << "an evaluation crops nothing";
}

}  // namespace
}  // namespace lockstep::trainers::augmentation_config_test
