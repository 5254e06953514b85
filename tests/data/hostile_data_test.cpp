// Images and data sets made to hurt. Cases are named after the rows of the attack that found them.
#include <chrono>
#include <fstream>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "core/memory_limit.h"
#include "data/class_folders.h"
#include "data/codecs/decode_image.h"
#include "data/files.h"
#include "data/idx.h"
#include "tests/data/idx_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::attack_data_test {
namespace {

namespace fs = std::filesystem;
using namespace lockstep::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uintmax_t kTebibyte = uintmax_t{1} << 40;

// A file of that size without bytes on the disk. False where there can be none.
[[nodiscard]] bool make_sparse(const fs::path& file, uintmax_t bytes) {
  std::error_code error;
  fs::resize_file(file, bytes, error);
  return !error;
}

std::vector<std::string> paths_of(const ClassFolders& folders) {
  std::vector<std::string> paths;
  for (const ImageFile& file : folders.files) paths.push_back(file.path);
  return paths;
}

// Two links to the folder itself were walked 2^40 times.
TEST(LinkedFolders, LinksToFoldersAboveNeitherHangNorRepeatImages) {
  const TempDir dir;
  for (const char* path : {"ants/1.jpg", "ants/deep/2.jpg", "bees/3.jpg"}) {
    write_file(dir / path, {0});
  }
  for (const char* link : {"ants/again", "ants/once more", "bees/up"}) {
    fs::create_directory_symlink(link[0] == 'b' ? ".." : ".", dir / link);
  }
  fs::create_directory_symlink("deep", dir / "ants/a link to deep");
  EXPECT_THAT(paths_of(find_class_folders(dir.path())),
              ElementsAre("ants/1.jpg", "ants/deep/2.jpg", "bees/3.jpg"));
}

// A folder outside the split is found through the first of its links, by name.
TEST(LinkedFolders, LinkedFoldersCountOnce) {
  const TempDir dir;
  write_file(dir / "elsewhere/1.jpg", {0});
  for (const char* name : {"split/ants", "split/bees"}) fs::create_directories(dir / name);
  for (const char* link : {"split/ants/b", "split/ants/a", "split/bees/c"}) {
    fs::create_directory_symlink(dir / "elsewhere", dir / link);
  }
  EXPECT_THAT(paths_of(find_class_folders(dir / "split")),
              ElementsAre("ants/a/1.jpg", "bees/c/1.jpg"));
}

TEST(HugePhotos, APhotoOfTerabytesIsUnreadable) {
  const TempDir dir;
  write_file(dir / "1.jpg", {0xFF, 0xD8, 0xFF});
  if (!make_sparse(dir / "1.jpg", 2 * kTebibyte)) GTEST_SKIP() << "no sparse files here";
  std::vector<std::byte> bytes;
  try {
    read_file((dir / "1.jpg").string(), bytes);
    FAIL() << "it was read";
  } catch (const UnreadableImage& error) {
    EXPECT_EQ(error.why(), "the file has 2199023255552 bytes; at most 512 Mi are read");
  }
  EXPECT_EQ(bytes.capacity(), 0U);
}

// The error of a set whose training images are of this header, in a file of this size, as plain
// text or as gzip.
class HugeIdx : public ::testing::Test {
 protected:
  HugeIdx() { write_tiny_set(folder_); }

  std::string error() const {
    try {
      open_idx_pair(temporary_.path(), "mnist");
    } catch (const Error& error) {
      return fmt::format("{}: {} {}", static_cast<int>(error.code()), error.what(), error.why());
    }
    return "no error";
  }

  const TempDir temporary_;
  const fs::path folder_ = temporary_ / "MNIST/raw";
  const fs::path images_ = folder_ / "train-images-idx3-ubyte";
};

TEST_F(HugeIdx, MoreThanMemoryIsRefusedBeforeItIsTaken) {
  write_file(images_, idx(0x803, {0x80000000U, 16, 32}, {}));
  if (!make_sparse(images_, kTebibyte + 16)) GTEST_SKIP() << "no sparse files here";
  if (max_memory() > kTebibyte) GTEST_SKIP() << "this machine has the memory";
  EXPECT_THAT(error(),
              AllOf(HasSubstr("5: out of memory: " + images_.string()),
                    HasSubstr("takes 1099511627776 bytes"),
                    HasSubstr("that is 1024.0 GiB")));
}

// As the file's own size tells, nothing of it is read.
TEST_F(HugeIdx, AFileTooLongIsRefusedByItsSize) {
  ASSERT_TRUE(make_sparse(images_, uintmax_t{1} << 33));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(error(), AllOf(HasSubstr("3: "), HasSubstr("goes on after the 40 bytes")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(HugeIdx, AGzipFileThatClaimsMoreThanItCanHoldIsRefused) {
  fs::remove(images_);
  write_gzip(images_.string() + ".gz", idx(0x803, {0x80000000U, 16384, 16384}, Bytes(1 << 20)));
  EXPECT_THAT(error(),
              AllOf(HasSubstr("3: "),
                    HasSubstr("it claims 576460752303423504 bytes, which a gzip file of")));
  // Zeros shrink most of all, and are still read.
  write_gzip(images_.string() + ".gz", idx(0x803, {4, 2048, 2048}, Bytes(4 << 22)));
  EXPECT_THAT(error(), HasSubstr("their images are 2048 x 2048 and 2 x 3"));
}

}  // namespace
}  // namespace lockstep::data::attack_data_test
