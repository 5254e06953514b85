// Which class a photo's label stands for.
#include <filesystem>

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/image_folder.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::class_labels_test {
namespace {

using lockstep::testing::image_file;
using lockstep::testing::TempDir;
using lockstep::testing::write_file;
using ::testing::ElementsAre;
namespace fs = std::filesystem;

std::vector<int32_t> labels_of(const Dataset& set) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < set.size(); ++i) labels.push_back(set.label(i));
  return labels;
}

TEST(ClassLabels, MeanTheSameInValAsInTrain) {
  const TempDir dir;
  const auto file = image_file("png_rgb");
  for (const char* path : {"train/a/1", "train/b/1", "train/c/1", "val/b/1", "val/c/1"}) {
    write_file(dir / (std::string(path) + ".png"), file);
  }
  for (const bool has_empty_folder : {false, true}) {
    if (has_empty_folder) fs::create_directories(dir / "val/a");
    const DatasetPair pair = open_image_folders(dir.path());
    EXPECT_THAT(labels_of(*pair.test), ElementsAre(1, 2));
    EXPECT_THAT(pair.test->class_names(), ElementsAre("a", "b", "c"));
  }
}

TEST(ClassLabels, AreThePlacesOfGivenClasses) {
  const TempDir dir;
  for (const char* path : {"val/b/1.png", "val/c/1.png", "val/c/2.png"}) {
    write_file(dir / path, image_file("png_rgb"));
  }
  const auto open = [&](const std::vector<std::string>& classes) {
    return open_image_folders(dir.path(), {.classes = classes}, Splits::kTest).test;
  };
  EXPECT_THAT(labels_of(*open({})), ElementsAre(0, 1, 1));
  const auto given = open({"c", "a", "d", "b"});
  EXPECT_THAT(labels_of(*given), ElementsAre(3, 0, 0));
  EXPECT_EQ(given->classes(), 4);
  EXPECT_NE(given->digest(), open({"c", "a", "b", "d"})->digest());
  fs::remove_all(dir / "val/b");
  EXPECT_THAT(labels_of(*open({"a", "b", "c"})), ElementsAre(2, 2)) << "one folder";
  EXPECT_THROW(open({"a", "b"}), DataError);
}

std::string error_of(const fs::path& root) {
  try {
    open_image_folders(root);
  } catch (const DataError& error) {
    return error.what();
  }
  return "none";
}

TEST(ClassLabels, AreNeverThoseOfAHiddenFolderOrOfNothing) {
  const TempDir dir;
  for (const char* path : {"train/a/1", "train/b/1", "train/.copies/1", "val/a/1", "val/b/1"}) {
    write_file(dir / (std::string(path) + ".png"), image_file("png_rgb"));
  }
  EXPECT_EQ(error_of(dir.path()), ".copies is a hidden folder in train alone");
  fs::remove_all(dir / "train/.copies");
  EXPECT_EQ(error_of(dir.path()), "none");
  fs::remove(dir / "val/a/1.png");
  fs::remove(dir / "val/b/1.png");
  EXPECT_EQ(error_of(dir.path()), "the folder " + (dir / "val").string() + " has no images");
}

}  // namespace
}  // namespace lockstep::data::class_labels_test
