// Progressive resizing: sides of training images that grow from epoch to epoch.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/image_folder.h"
#include "data/loader.h"
#include "tests/support/golden.h"
#include "tests/support/image_files.h"

namespace lockstep::data::crop_ramp_test {
namespace {

using lockstep::testing::golden_cases;
using lockstep::testing::GoldenCase;
using lockstep::testing::TempDir;
using lockstep::testing::write_image_folders;
using ::testing::ElementsAre;

TEST(CropRamp, HasFfcvsSides) {
  for (const GoldenCase& golden : golden_cases("ffcv_epochs")) {
    SCOPED_TRACE(golden.name());
    const auto number = [&](const char* key) { return static_cast<int64_t>(golden.number(key)); };
    const CropRamp ramp = {
        .from = number("least"), .first = number("first"), .last = number("last")};
    const Tensor sides = golden.tensor("sides");
    for (int64_t epoch = 0; epoch < number("epochs"); ++epoch) {
      EXPECT_EQ(ramp.side(epoch, number("largest")), sides.data<int64_t>()[epoch]) << epoch;
    }
  }
}

TEST(CropRamp, StaysWithinItsEnds) {
  const CropRamp ramp = {.from = 40, .first = 0, .last = 9};
  for (int64_t epoch = 0; epoch < 12; ++epoch) {
    EXPECT_GE(ramp.side(epoch, 50), 40);
    EXPECT_LE(ramp.side(epoch, 50), 50);
  }
  const CropRamp odd = {.from = 60, .first = 2, .last = 9};  // 60 is next to 64
  EXPECT_EQ(odd.side(2, 96), 60);
  EXPECT_EQ(CropRamp{}.side(0, 224), 224);
}

const Augmentation kChanges = {
    .flip = Flip::kRandom, .resized_crop = true, .trivial = true, .seed = 5};

PhotoOptions growing() {
  return {.train_crop = 64,
          .train_ramp = {.from = 32, .first = 1, .last = 2},
          .val_resize = 70,
          .val_crop = 60};
}

// An epoch of small images has those of a run whose images are all so small.
TEST(CropRamp, GivesTheImagesOfItsSide) {
  const TempDir dir;
  write_image_folders(dir.path(), 3);
  const DatasetPair pair = open_image_folders(dir.path(), growing());
  EXPECT_EQ(pair.train->image_shape(), (ImageShape{3, 64, 64}));
  EXPECT_EQ(pair.test->training_shape(0), (ImageShape{3, 60, 60}));
  for (const auto& [epoch, side] : {std::pair{1, 32}, std::pair{2, 64}}) {
    const ImageShape shape = {3, side, side};
    EXPECT_EQ(pair.train->training_shape(epoch), shape);
    const DatasetPair all =
        open_image_folders(dir.path(), {.train_crop = side, .val_resize = 70, .val_crop = 60});
    for (const Augmentation& changes : {kChanges, Augmentation{}}) {
      std::vector<uint8_t> got(static_cast<size_t>(shape.numel())), want = got;
      pair.train->read_for_training(2, epoch, changes, got);
      all.train->read_for_training(2, epoch, changes, want);
      EXPECT_EQ(got, want) << side;
    }
  }
}

TEST(CropRamp, IsPartOfTheDigest) {
  const TempDir dir;
  write_image_folders(dir.path(), 1);
  std::set<std::string> digests;
  PhotoOptions photos = growing();
  digests.insert(open_image_folders(dir.path(), photos).train->digest());
  photos.train_ramp.last = 3;
  digests.insert(open_image_folders(dir.path(), photos).train->digest());
  photos.train_ramp = {};
  digests.insert(open_image_folders(dir.path(), photos).train->digest());
  EXPECT_EQ(digests.size(), 3U);
}

// In either case batches of six photos and an epoch's last one of two.
TEST(CropRamp, LoaderMakesBatchesOfTheEpochsSize) {
  const TempDir dir;
  write_image_folders(dir.path(), 4);
  const DatasetPair pair = open_image_folders(dir.path(), growing());
  const BatchPlan plan = {.dataset_size = 8, .global_batch = 6, .shards = 2, .seed = 3};
  for (const int workers : {0, 2}) {
    Loader loader(pair.train,
                  training_sequence(plan, 0, 3 * steps_per_epoch(plan)),
                  {.workers = workers, .ahead = 2, .augmentation = kChanges});
    std::vector<Shape> shapes;
    while (loader.left() > 0) {
      const LoadedBatch batch = loader.next();
      shapes.push_back(batch.images.shape());
      const ImageShape shape = pair.train->training_shape(batch.epoch);
      std::vector<uint8_t> want(static_cast<size_t>(shape.numel()));
      pair.train->read_for_training(batch.indices.data<int64_t>()[1], batch.epoch, kChanges, want);
      const Tensor second = batch.images.slice(1, 1);
      EXPECT_TRUE(std::ranges::equal(second.span<uint8_t>(), want));
    }
    EXPECT_THAT(shapes,
                ElementsAre(Shape{6, 3, 32, 32},
                            Shape{2, 3, 32, 32},
                            Shape{6, 3, 32, 32},
                            Shape{2, 3, 32, 32},
                            Shape{6, 3, 64, 64},
                            Shape{2, 3, 64, 64}));
  }
}

}  // namespace
}  // namespace lockstep::data::crop_ramp_test
