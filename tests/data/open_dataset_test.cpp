#include "data/open_dataset.h"

#include <array>

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/synthetic.h"
#include "tests/data/idx_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::open_dataset_test {
namespace {

using namespace lockstep::testing;
using ::testing::HasSubstr;

template <class E, class F>
std::string error_of(F&& function) {
  try {
    function();
  } catch (const E& error) {
    return format_error(error);
  }
  return "no error";
}

std::string detect_error(const std::filesystem::path& dir) {
  return error_of<DataError>([&] { detect_dataset(dir); });
}

TEST(DetectDataset, KnowsTorchvisionsFolders) {
  const TempDir temporary;
  write_tiny_set(temporary.path() / "a/MNIST/raw");
  write_tiny_set(temporary.path() / "b/FashionMNIST/raw");
  EXPECT_EQ(detect_dataset(temporary.path() / "a"), "mnist");
  EXPECT_EQ(detect_dataset(temporary.path() / "b"), "fashion-mnist");
  EXPECT_EQ(open_dataset("auto", temporary.path() / "b").train->name(), "fashion-mnist/train");
}

TEST(DetectDataset, GoesByTheFoldersNameWhereFilesSayNothing) {
  const TempDir temporary;
  write_tiny_set(temporary.path() / "a/raw");
  write_tiny_set(temporary.path() / "FashionMNIST/raw");
  EXPECT_EQ(detect_dataset(temporary.path() / "a"), "mnist");
  EXPECT_EQ(detect_dataset(temporary.path() / "a/raw"), "mnist");
  EXPECT_EQ(detect_dataset(temporary.path() / "FashionMNIST"), "fashion-mnist");
  EXPECT_EQ(detect_dataset(temporary.path() / "FashionMNIST/raw"), "fashion-mnist");
  write_tiny_set(temporary.path() / "fashion-project/mnist/raw");
  write_tiny_set(temporary.path() / "mnist-project/fashion/idx");
  EXPECT_EQ(detect_dataset(temporary.path() / "fashion-project/mnist/"), "mnist");
  EXPECT_EQ(detect_dataset(temporary.path() / "mnist-project/fashion/idx"), "fashion-mnist");
}

TEST(DetectDataset, AsksWhenThereAreTwo) {
  const TempDir temporary;
  write_tiny_set(temporary.path() / "MNIST/raw");
  write_tiny_set(temporary.path() / "FashionMNIST/raw");
  EXPECT_THAT(detect_error(temporary.path()), HasSubstr("more than one data set in "));
  EXPECT_EQ(open_dataset("mnist", temporary.path()).train->name(), "mnist/train");
  std::filesystem::remove_all(temporary.path() / "MNIST");
  std::filesystem::create_directories(temporary.path() / "cifar-10-batches-bin");
  EXPECT_THAT(detect_error(temporary.path()), HasSubstr("choose one: fashion-mnist or cifar10"));
  EXPECT_EQ(detect_dataset(temporary.path(), 1), "fashion-mnist");
  EXPECT_EQ(detect_dataset(temporary.path(), 3), "cifar10");
}

TEST(DetectDataset, TellsWhatItLookedFor) {
  const TempDir temporary;
  EXPECT_THAT(detect_error(temporary.path()), HasSubstr("no known data set in "));
  EXPECT_THAT(detect_error(temporary.path()), HasSubstr("looked for MNIST/raw, FashionMNIST/raw"));
  EXPECT_THAT(detect_error(temporary.path()), HasSubstr("cifar-10-batches-bin or the folder"));
  EXPECT_THAT(detect_error(temporary.path() / "none"), HasSubstr("there is no such folder"));
}

TEST(DetectDataset, TakesTrainAndValForImageFolders) {
  const TempDir temporary;
  std::filesystem::create_directories(temporary.path() / "train");
  EXPECT_THAT(detect_error(temporary.path()), HasSubstr("no known data set"));
  std::filesystem::create_directories(temporary.path() / "val");
  EXPECT_EQ(detect_dataset(temporary.path()), "imagefolder");
  std::filesystem::remove(temporary.path() / "train");
  EXPECT_EQ(detect_dataset(temporary.path()), "imagefolder");
}

TEST(OpenDataset, NeedsNoTrainingImagesForTheTestSplit) {
  const TempDir temporary;
  write_tiny_set(temporary.path());
  std::filesystem::remove(temporary.path() / "train-images-idx3-ubyte");
  std::filesystem::remove(temporary.path() / "train-labels-idx1-ubyte");
  const DatasetPair pair = open_dataset("auto", temporary.path(), {}, Splits::kTest);
  EXPECT_EQ(pair.train, nullptr);
  EXPECT_EQ(pair.test->name(), "mnist/test");
  EXPECT_THAT(error_of<DataError>([&] { open_dataset("mnist", temporary.path()); }),
              HasSubstr("missing: train-images-idx3-ubyte"));
  for (const char* name : {"digits", "shapes"}) {
    EXPECT_EQ(open_dataset(name, {}, {}, Splits::kTest).train, nullptr) << name;
  }
}

TEST(OpenDataset, KnowsItsNames) {
  EXPECT_EQ(open_dataset("digits", {}).test->name(), "digits/test");
  EXPECT_EQ(open_dataset("shapes", {}).train->name(), "shapes/train");
  EXPECT_THAT(error_of<UsageError>([] { open_dataset("imagenet", {}); }),
              HasSubstr("the data set imagenet is not known"));
}

TEST(Synthetic, IsAFunctionOfItsOptions) {
  const Synthetic::Options options{.images = 5, .classes = 3, .shape = {3, 5, 7}, .seed = 8};
  std::array<uint8_t, 105> pixels{};
  std::array<uint8_t, 105> again{};
  const Synthetic set(options);
  set.read(3, pixels);
  Synthetic(options).read(3, again);
  EXPECT_EQ(pixels, again);
  EXPECT_EQ(Synthetic(options).digest(), set.digest());
  EXPECT_EQ(Synthetic(options).label(3), set.label(3));
  set.read(2, again);
  EXPECT_NE(pixels, again);

  Synthetic::Options other = options;
  other.seed = 9;
  Synthetic(other).read(3, again);
  EXPECT_NE(pixels, again);
  EXPECT_NE(Synthetic(other).digest(), set.digest());
}

TEST(Synthetic, UsesAllValues) {
  const Synthetic set({.images = 1000, .classes = 3, .shape = {1, 100, 103}});
  std::vector<uint8_t> pixels(10300);
  set.read(0, pixels);
  std::array<int, 256> counts{};
  for (const uint8_t pixel : pixels) ++counts.at(pixel);
  for (const int count : counts) EXPECT_NEAR(count, 40, 36);
  std::array<int, 3> labels{};
  for (int64_t i = 0; i < 1000; ++i) ++labels.at(static_cast<size_t>(set.label(i)));
  for (const int count : labels) EXPECT_NEAR(count, 333, 80);
}

TEST(Synthetic, RefusesNothing) {
  EXPECT_THROW(Synthetic({.images = 0, .shape = {1, 1, 1}}), InternalError);
  EXPECT_THROW(Synthetic({.shape = {1, 0, 1}}), InternalError);
}

}  // namespace
}  // namespace lockstep::data::open_dataset_test
