#include "data/class_folders.h"

#include <cstdint>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::class_folders_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using namespace lockstep::testing;
using Bytes = std::vector<uint8_t>;
TEST(ClassFolders, FilesThatAreLeftOutAreCounted) {
  const TempDir dir;
  const Bytes file = image_file("png_rgb");
  for (const char* path : {"a/1.png",
                           "b/1.png",
                           "a/1.webp",
                           "a/2.WEBP",
                           "b/3.webp",
                           "b/1.bmp",
                           "b/1.tif",
                           "b/README",
                           "a/.DS_Store",
                           "b/Thumbs.db",
                           "b/x.\x1b[31m",
                           "b/x.longextension"}) {
    write_file(dir / path, file);
  }
  const ClassFolders folders = find_class_folders(dir.path());
  EXPECT_EQ(folders.files.size(), 2U);
  EXPECT_THAT(folders.left,
              ElementsAre(Pair(".bmp", 1),
                          Pair(".tif", 1),
                          Pair(".webp", 3),
                          Pair("hidden", 2),
                          Pair("no extension", 1),
                          Pair("other", 2)));
  EXPECT_EQ(describe_left(folders.left),
            "8 files that are neither .jpg nor .png: 3 .webp, 2 other, 1 .bmp, 1 .tif, "
            "1 no extension");
  EXPECT_EQ(describe_left({{"hidden", 3}}), "");
  EXPECT_EQ(describe_left({{".bmp", 1}}), "1 file that is neither .jpg nor .png: 1 .bmp");
}

TEST(ClassFolders, ManyKindsOfFilesAreFewInTheCounts) {
  const TempDir dir;
  const Bytes file = image_file("png_rgb");
  write_file(dir / "a/1.png", file);
  write_file(dir / "b/1.png", file);
  for (int i = 0; i < 50; ++i) {
    write_file(dir / fmt::format("{}/x.{}", i % 2 == 0 ? "a" : "b", i), file);
  }
  const ClassFolders folders = find_class_folders(dir.path());
  EXPECT_LE(folders.left.size(), 33U);
  EXPECT_LT(describe_left(folders.left).size(), 120U);
}

}  // namespace
}  // namespace lockstep::data::class_folders_test
