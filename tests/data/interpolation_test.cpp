// Photos resized by bilinear or bicubic: in tests, and in training as drawn.
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "data/image_folder.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::interpolation_test {
namespace {

using namespace lockstep::testing;

using Bytes = std::vector<uint8_t>;
using enum Interpolation;

constexpr int64_t kSide = 40;
const Augmentation kCrops = {.flip = Flip::kRandom, .resized_crop = true, .seed = 5};

PhotoOptions photos_by(Interpolation tests, std::optional<Interpolation> training) {
  return {.train_crop = kSide,
          .val_resize = kSide + 5,
          .val_crop = kSide,
          .val_by = tests,
          .train_by = training};
}

Bytes crop_of(const Dataset& set, int64_t image, int64_t epoch) {
  Bytes pixels(static_cast<size_t>(set.training_shape(epoch).numel()));
  set.read_for_training(image, epoch, kCrops, pixels);
  return pixels;
}

Bytes center_of(const Dataset& set, int64_t image) {
  Bytes pixels(static_cast<size_t>(set.image_shape().numel()));
  set.read(image, pixels);
  return pixels;
}

struct Folders : TempDir {
  Folders() { write_image_folders(path(), 4); }
};

class Interpolations : public ::testing::Test {
 protected:
  DatasetPair open(const PhotoOptions& photos) const {
    return open_image_folders(dir_.path(), photos);
  }
  // Whether the crop of an epoch is the bicubic one; fails where it is neither.
  bool drew_bicubic(const Dataset& set, int64_t image, int64_t epoch) const {
    const Bytes drawn = crop_of(set, image, epoch);
    const bool bicubic = drawn == crop_of(*bicubic_.train, image, epoch);
    EXPECT_NE(bicubic, drawn == crop_of(*bilinear_.train, image, epoch)) << image << " " << epoch;
    return bicubic;
  }

  const Folders dir_;
  const DatasetPair bilinear_ = open(photos_by(kBilinear, kBilinear));
  const DatasetPair bicubic_ = open(photos_by(kBilinear, kBicubic));
};

TEST_F(Interpolations, OfTestsAreThoseOfResizing) {
  const DatasetPair bicubic = open(photos_by(kBicubic, kBilinear));
  for (const int64_t image : {0, 1, 2}) {
    const Image photo = decode(image_file(image == 0   ? "jpeg_420"
                                          : image == 1 ? "png_rgb"
                                                       : "jpeg_progressive"));
    const ImageSize size = {kSide + 5, (kSide + 5) * photo.region.width / photo.region.height};
    Bytes want(kSide * kSide * 3);
    resample(photo,
             {.box = photo.region,
              .size = size,
              .window = {2, (size.width - kSide) / 2, kSide, kSide},
              .by = kBicubic},
             false,
             want);
    EXPECT_EQ(center_of(*bicubic.test, image), want) << image;
    EXPECT_NE(center_of(*bilinear_.test, image), want) << image;
    EXPECT_EQ(crop_of(*bicubic.train, image, 0), crop_of(*bilinear_.train, image, 0));
    EXPECT_EQ(center_of(*bicubic_.test, image), center_of(*bilinear_.test, image));
  }
}

// Half of them each, for one image and for one epoch.
TEST_F(Interpolations, AreDrawnForEachImageAndEpoch) {
  const DatasetPair drawn = open(photos_by(kBilinear, std::nullopt));
  int of_image = 0, of_epoch = 0;
  for (int64_t i = 0; i < 60; ++i) {  // images beyond the eight photos are further views of them
    of_image += drew_bicubic(*drawn.train, 1, i) ? 1 : 0;
    of_epoch += drew_bicubic(*drawn.train, i, 0) ? 1 : 0;
  }
  for (const int count : {of_image, of_epoch}) {
    EXPECT_GT(count, 18);
    EXPECT_LT(count, 42);
  }
  EXPECT_EQ(center_of(*drawn.test, 1), center_of(*bilinear_.test, 1));
}

TEST_F(Interpolations, AreDrawnAlikeFromTheCacheAndForGrowingImages) {
  PhotoOptions photos = photos_by(kBicubic, std::nullopt);
  PhotoOptions cached = photos;
  cached.cache_bytes = 1 << 20;
  PhotoOptions growing = photos;
  growing.train_crop = 64;
  growing.train_ramp = {.from = kSide, .first = 10, .last = 11};
  const DatasetPair sets[] = {open(photos), open(cached), open(growing)};
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    for (int64_t image = 0; image < 8; ++image) {
      const Bytes want = crop_of(*sets[0].train, image, epoch);
      EXPECT_EQ(crop_of(*sets[1].train, image, epoch), want) << image << " " << epoch;
      EXPECT_EQ(crop_of(*sets[2].train, image, epoch), want) << image << " " << epoch;
    }
  }
  EXPECT_EQ(center_of(*sets[1].test, 3), center_of(*sets[0].test, 3));
}

TEST_F(Interpolations, ShrinkPhotosFirstWhereAsked) {
  PhotoOptions photos = photos_by(kBicubic, kBicubic);
  photos.train_crop = photos.val_resize = photos.val_crop = 9;
  photos.shrink = true;
  PhotoOptions cached = photos;
  cached.cache_bytes = 1 << 20;
  const DatasetPair plain = open(photos), kept = open(cached);
  photos.val_by = kBilinear;
  const DatasetPair bilinear = open(photos);
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    EXPECT_EQ(crop_of(*kept.train, 0, epoch), crop_of(*plain.train, 0, epoch)) << epoch;
  }
  EXPECT_EQ(center_of(*kept.test, 0), center_of(*plain.test, 0));
  EXPECT_NE(center_of(*bilinear.test, 0), center_of(*plain.test, 0));
}

TEST_F(Interpolations, ArePartOfTheDigest) {
  std::set<std::string> train, test;
  for (const Interpolation tests : {kBilinear, kBicubic}) {
    for (const std::optional<Interpolation> training :
         {std::optional(kBilinear), std::optional(kBicubic), std::optional<Interpolation>()}) {
      const DatasetPair pair = open(photos_by(tests, training));
      train.insert(pair.train->digest());
      test.insert(pair.test->digest());
    }
  }
  EXPECT_EQ(train.size(), 6U);
  EXPECT_EQ(test.size(), 2U) << "of training no part of a test's";
}

}  // namespace
}  // namespace lockstep::data::interpolation_test
