#include "data/image_folder.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/error.h"
#include "data/image_random.h"
#include "data/loader.h"
#include "data/open_dataset.h"
#include "data/rand_augment.h"
#include "data/trivial_augment.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::image_folder_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace lockstep::testing;
namespace fs = std::filesystem;

using Bytes = std::vector<uint8_t>;

Bytes pixels_of(const Dataset& set, int64_t i) {
  Bytes pixels(static_cast<size_t>(set.image_shape().numel()));
  set.read(i, pixels);
  return pixels;
}

const Augmentation kAugmentation = {.flip = Flip::kRandom, .resized_crop = true, .seed = 5};

Bytes training_pixels(const Dataset& set,
                      int64_t i,
                      int64_t epoch,
                      const Augmentation& augmentation = kAugmentation) {
  Bytes pixels(static_cast<size_t>(set.image_shape().numel()));
  set.read_for_training(i, epoch, augmentation, pixels);
  return pixels;
}

DataError error_of(const fs::path& dir) {
  try {
    (void)open_image_folders(dir);
  } catch (const DataError& error) {
    return error;
  }
  return DataError("nothing was thrown");
}

TEST(ImageFolder, FindsFilesInTorchvisionsOrder) {
  const TempDir dir;
  const Bytes file = image_file("png_rgb");
  for (const char* path : {"b/z.JPG", "b/a b.png", "b/ü.jpeg", "b/deep/1.jpg", "Z/x.png"}) {
    write_file(dir / path, file);
  }
  write_file(dir / "b/notes.txt", file);
  write_file(dir / "b/moving.gif", file);
  write_file(dir / "outside.png", file);
  fs::create_symlink("../b/z.JPG", dir / "Z/link.jpg");
  const ClassFolders folders = find_class_folders(dir.path());
  EXPECT_THAT(folders.classes, ElementsAre("Z", "b"));
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
  for (const ImageFile& image : folders.files) {
    paths.push_back(image.path);
    labels.push_back(image.label);
  }
  EXPECT_THAT(
      paths,
      ElementsAre("Z/link.jpg", "Z/x.png", "b/a b.png", "b/z.JPG", "b/ü.jpeg", "b/deep/1.jpg"));
  EXPECT_THAT(labels, ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_THAT(folders.left, ElementsAre(Pair(".gif", 1), Pair(".txt", 1)));
}

TEST(ImageFolder, ShowsTheCenterAsTorchvisionDoes) {
  for (const GoldenCase& golden : golden_cases("image_centers")) {
    SCOPED_TRACE(golden.name());
    const TempDir dir;
    write_file(dir / "a/1.png", bytes_of(golden.tensor("file")));
    write_file(dir / "b/1.png", bytes_of(golden.tensor("file")));
    const Bytes pixels = pixels_of(ImageFolder("test", dir.path()), 0);
    const Bytes want = bytes_of(golden.tensor("rows"));
    constexpr int64_t kRow = 224 * 3;
    for (const int64_t k : {0, 1, 2}) {
      EXPECT_TRUE(std::equal(want.begin() + k * kRow,
                             want.begin() + (k + 1) * kRow,
                             pixels.begin() + (k * 111 + k / 2) * kRow))
          << "row " << k;
    }
  }
}

TEST(ImageFolder, AugmentsBySeedEpochAndImage) {
  const TempDir dir;
  write_image_folders(dir.path(), 3);
  const DatasetPair pair = open_image_folders(dir.path());
  const Bytes first = training_pixels(*pair.train, 1, 0);
  EXPECT_EQ(training_pixels(*pair.train, 1, 0), first);
  EXPECT_NE(training_pixels(*pair.train, 1, 1), first);
  EXPECT_NE(training_pixels(*pair.train, 2, 0), first);
  Augmentation other = kAugmentation;
  other.seed = 6;
  EXPECT_NE(training_pixels(*pair.train, 1, 0, other), first);
  EXPECT_EQ(training_pixels(*pair.train, 1, 0, {}), pixels_of(*pair.train, 1));
}

TEST(ImageFolder, FlipsEveryOtherImage) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  const DatasetPair pair = open_image_folders(dir.path());
  Augmentation unflipped = kAugmentation;
  unflipped.flip = Flip::kNone;
  int flipped = 0;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const Bytes plain = training_pixels(*pair.train, 0, epoch, unflipped);
    const Bytes got = training_pixels(*pair.train, 0, epoch);
    if (got == plain) continue;
    ++flipped;
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + 3, plain.begin() + 223 * 3));
  }
  EXPECT_GT(flipped, 10);
  EXPECT_LT(flipped, 30);
}

// In the crops of each epoch.
TEST(ImageFolder, ShowsTheOtherSideInEachEpoch) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  const DatasetPair pair = open_image_folders(dir.path());
  Augmentation alternating = kAugmentation, unflipped = kAugmentation;
  alternating.flip = Flip::kAlternating;
  unflipped.flip = Flip::kNone;
  for (const int64_t image : {0, 1, 2}) {
    const bool first =
        training_pixels(*pair.train, image, 0) != training_pixels(*pair.train, image, 0, unflipped);
    for (int64_t epoch = 0; epoch < 6; ++epoch) {
      const Bytes plain = training_pixels(*pair.train, image, epoch, unflipped);
      const Bytes got = training_pixels(*pair.train, image, epoch, alternating);
      EXPECT_EQ(got != plain, first == (epoch % 2 == 0)) << image << " " << epoch;
    }
  }
}

TEST(ImageFolder, ChangesCropsOnceMore) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  const DatasetPair pair = open_image_folders(dir.path());
  Augmentation trivial = kAugmentation, rand = kAugmentation;
  trivial.trivial = true;
  rand.rand = {.layers = 2, .magnitude = 7, .deviation = 0.5};
  int changed = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Bytes plain = training_pixels(*pair.train, 1, epoch);
    Bytes once = plain, in_layers = plain;
    ImageRandom random(kAugmentation.seed, RandomPurpose::kTrivialAugment, epoch, 1);
    TrivialChange of_pixels = draw_trivial_change(random);
    trivial.bilinear = of_pixels.bilinear = epoch % 2 == 1;
    change(of_pixels, {224, 224}, once);
    EXPECT_EQ(training_pixels(*pair.train, 1, epoch, trivial), once) << epoch;
    ImageRandom of_layers(kAugmentation.seed, RandomPurpose::kRandAugment, epoch, 1);
    for (int layer = 0; layer < 2; ++layer) {
      RandChange drawn;
      if (draw_rand_change(rand.rand, of_layers, drawn)) change(drawn, {224, 224}, in_layers);
    }
    EXPECT_EQ(training_pixels(*pair.train, 1, epoch, rand), in_layers) << epoch;
    changed += (once != plain ? 1 : 0) + (in_layers != plain ? 1 : 0);
  }
  EXPECT_GT(changed, 20);
}

TEST(ImageFolder, NamesTheFileThatItCannotRead) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  write_file(dir / "train/bees/0.jpg", {1, 2, 3});
  fs::remove(dir / "val/ants/1.jpg");
  const DatasetPair pair = open_image_folders(dir.path());
  try {
    (void)pixels_of(*pair.train, 2);
    FAIL() << "nothing was thrown";
  } catch (const UnreadableImage& error) {
    EXPECT_EQ(error.why(), "bees/0.jpg: it is neither JPEG nor PNG");
  }
  fs::remove(dir / "train/bees/1.jpg");  // while training goes on
  try {
    (void)pixels_of(*pair.train, 3);
    FAIL() << "nothing was thrown";
  } catch (const UnreadableImage& error) {
    EXPECT_EQ(error.why(), "bees/1.jpg: the file cannot be opened: No such file or directory");
  }
}

TEST(ImageFolder, LetsTheNextImageTakeTheBrokenOnesPlace) {
  const TempDir dir;
  write_image_folders(dir.path(), 3);
  write_file(dir / "train/ants/2.jpg", {1, 2, 3});
  const DatasetPair pair = open_image_folders(dir.path());
  for (const int workers : {0, 3}) {
    const BatchSequence sequence = {.count = 4, .max_images = 6, .at = [](int64_t epoch) {
                                      return MicroBatch{.epoch = epoch,
                                                        .images = {0, 1, 2, 3, 4, 5},
                                                        .shards = Shards::single(6)};
                                    }};
    Loader loader(pair.train, sequence, {.workers = workers, .augmentation = kAugmentation});
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      const LoadedBatch batch = loader.next();
      const auto labels = batch.labels.span<int32_t>();
      EXPECT_THAT(std::vector(labels.begin(), labels.end()), ElementsAre(0, 0, 1, 1, 1, 1));
      const auto row = batch.images.slice(2, 1).span<uint8_t>();
      EXPECT_TRUE(std::ranges::equal(row, training_pixels(*pair.train, 3, epoch)));
      ASSERT_EQ(batch.skipped.size(), 1U);
      EXPECT_EQ(batch.skipped[0].index, 2);
      EXPECT_EQ(batch.skipped[0].why, "ants/2.jpg: it is neither JPEG nor PNG");
    }
  }
}

TEST(ImageFolder, LeavesABatchBlackThatSkipsTooMany) {
  EXPECT_EQ(skip_limit(1281167), 1281);
  for (const int images : {1, 10}) {
    const TempDir dir;
    for (const char* name : {"a", "b"}) {
      for (int i = 0; i < images; ++i) write_file(dir / name / (std::to_string(i) + ".png"), {});
    }
    const auto set = std::make_shared<ImageFolder>("test", dir.path());
    const EvaluationPlan plan = {.dataset_size = 2 * images, .chunk_images = 2 * images};
    Loader loader(set, evaluation_sequence(plan), {.workers = 0});
    const LoadedBatch batch = loader.next();
    EXPECT_EQ(std::ssize(batch.skipped), skip_limit(2 * images) + 1);
    EXPECT_EQ(batch.skipped.back().why, "b/0.png: the file is empty");
    EXPECT_TRUE(
        std::ranges::all_of(batch.images.span<uint8_t>(), [](uint8_t x) { return x == 0; }));
  }
}

TEST(ImageFolder, SaysWhatIsWrongWithTheFolders) {
  const TempDir dir;
  const Bytes file = image_file("png_rgb");
  const auto root = dir.path();
  fs::create_directories(root / "train");
  EXPECT_THAT(error_of(root).what(), HasSubstr("/train has no class folders"));
  write_file(root / "train/a/1.png", file);
  EXPECT_THAT(error_of(root).what(), HasSubstr("/train has only one class folder"));
  fs::create_directories(root / "train/b");
  EXPECT_THAT(error_of(root).what(), HasSubstr("train/b has no images"));
  write_file(root / "train/b/1.png", file);
  EXPECT_THAT(error_of(root).what(), HasSubstr("/val cannot be read"));
  write_file(root / "val/1.png", file);
  EXPECT_THAT(error_of(root).what(), HasSubstr("/val are not sorted into classes"));
  write_file(root / "val/a/1.png", file);
  write_file(root / "val/c/1.png", file);
  const DataError differ = error_of(root);
  EXPECT_THAT(differ.what(), HasSubstr("no class has the name of the folder "));
  EXPECT_THAT(differ.what(), HasSubstr("/val/c"));
  EXPECT_EQ(differ.why(), "the 2 classes are 'a', 'b'");
  fs::remove_all(root / "val");
  write_file(root / "val", file);
  EXPECT_THAT(error_of(root).what(), HasSubstr("/val cannot be read"));
}

// Training pixels of every image in an epoch.
std::vector<Bytes> epoch_of(const Dataset& set, int64_t epoch) {
  std::vector<Bytes> all;
  for (int64_t i = 0; i < set.size(); ++i) all.push_back(training_pixels(set, i, epoch));
  return all;
}

// Training photos that can be had without their files, which this makes unreadable.
int64_t count_kept(const fs::path& root, const Dataset& set) {
  for (const auto& entry : fs::recursive_directory_iterator(root / "train")) {
    if (!entry.is_regular_file()) continue;
    const auto written = fs::last_write_time(entry);
    write_file(entry.path(), Bytes(fs::file_size(entry)));
    fs::last_write_time(entry, written);
  }
  int64_t kept = 0;
  for (int64_t i = 0; i < set.size(); ++i) {
    try {
      (void)training_pixels(set, i, 0);
      ++kept;
    } catch (const UnreadableImage&) {  // it was read
    }
  }
  return kept;
}

TEST(ImageFolder, CachesDecodedPhotos) {
  for (const bool shrink : {false, true}) {
    const TempDir dir;
    write_image_folders(dir.path(), 4);
    const PhotoOptions options = {
        .train_crop = 9, .val_resize = 9, .val_crop = 9, .shrink = shrink};
    PhotoOptions kept = options;
    kept.cache_bytes = 1 << 20;
    const DatasetPair plain = open_image_folders(dir.path(), options);
    const DatasetPair cached = open_image_folders(dir.path(), kept);
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      EXPECT_EQ(epoch_of(*cached.train, epoch), epoch_of(*plain.train, epoch)) << epoch;
      EXPECT_EQ(pixels_of(*cached.train, 3), pixels_of(*plain.train, 3));
    }
    const int64_t images = count_kept(dir.path(), *cached.train);
    EXPECT_TRUE(shrink ? images > 0 : images == 8) << images;
    EXPECT_EQ(count_kept(dir.path(), *plain.train), 0);
  }
}

TEST(ImageFolder, KeepsNoMoreThanFitsIntoTheCache) {
  const TempDir dir;
  write_image_folders(dir.path(), 4);
  PhotoOptions options;
  options.cache_bytes = 3 * (53 * 37 * 3 + 256);  // three of eight, all of one size
  const DatasetPair cached = open_image_folders(dir.path(), options);
  const DatasetPair plain = open_image_folders(dir.path());
  (void)epoch_of(*cached.train, 0);
  EXPECT_EQ(epoch_of(*cached.train, 1), epoch_of(*plain.train, 1));
  EXPECT_EQ(count_kept(dir.path(), *cached.train), 3);
}

TEST(ImageFolder, NoticesAPhotoThatIsReplaced) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  PhotoOptions options;
  options.cache_bytes = 1 << 20;
  const DatasetPair cached = open_image_folders(dir.path(), options);
  const Bytes before = training_pixels(*cached.train, 0, 0);
  Bytes file = image_file("jpeg_420");
  const auto table = std::ranges::search(file, Bytes{0xFF, 0xDB}).begin();  // of quantization
  ASSERT_NE(table, file.end());
  table[5] ^= 0x10;
  write_file(dir / "train/ants/0.jpg", file);
  fs::last_write_time(dir / "train/ants/0.jpg",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  const Bytes after = training_pixels(*cached.train, 0, 0);
  EXPECT_NE(after, before);
  EXPECT_EQ(after, training_pixels(*open_image_folders(dir.path()).train, 0, 0));
  file.push_back(0);
  write_file(dir / "train/ants/0.jpg", file);
  try {
    (void)training_pixels(*cached.train, 0, 0);
    FAIL() << "nothing was thrown";
  } catch (const UnreadableImage& error) {
    EXPECT_EQ(
        error.why(),
        fmt::format(
            "ants/0.jpg: the file has {} bytes now, it had {}", file.size(), file.size() - 1));
  }
}

TEST(ImageFolder, OpensNothingButPlainFiles) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  fs::create_directories(dir / "train/ants/folder.jpg");
  ASSERT_EQ(mkfifo((dir / "train/ants/pipe.jpg").c_str(), 0600), 0);
  fs::create_symlink("nowhere", dir / "train/ants/zero.jpg");
  const DatasetPair pair = open_image_folders(dir.path());
  ASSERT_EQ(pair.train->size(), 6);
  const auto why = [&](int64_t i) -> std::string {
    try {
      (void)pixels_of(*pair.train, i);
    } catch (const UnreadableImage& error) {
      return error.why();
    }
    return "";
  };
  EXPECT_EQ(why(2), "ants/pipe.jpg: it is not a plain file");
  EXPECT_EQ(why(3), "ants/zero.jpg: the file cannot be opened: No such file or directory");
}

TEST(ImageFolder, TakesOtherSizes) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  const DatasetPair pair =
      open_image_folders(dir.path(), {.train_crop = 299, .val_resize = 70, .val_crop = 64});
  EXPECT_EQ(pair.train->image_shape(), (ImageShape{3, 299, 299}));
  EXPECT_EQ(pair.test->image_shape(), (ImageShape{3, 64, 64}));
  const Bytes large = training_pixels(*pair.train, 0, 0);
  EXPECT_GT(std::set(large.begin(), large.end()).size(), 50U);
  EXPECT_NE(pixels_of(*pair.test, 0), pixels_of(*pair.test, 1));
  EXPECT_NE(pair.train->digest(), open_image_folders(dir.path()).train->digest());
}

TEST(ImageFolder, DigestSeesNamesAndSizes) {
  const TempDir dir;
  write_image_folders(dir.path(), 2);
  const std::string before = open_image_folders(dir.path()).train->digest();
  EXPECT_EQ(open_dataset("imagefolder", dir.path()).train->digest(), before);
  fs::rename(dir / "train/ants/0.jpg", dir / "train/ants/9.jpg");
  EXPECT_NE(open_image_folders(dir.path()).train->digest(), before);
}

}  // namespace
}  // namespace lockstep::data::image_folder_test
