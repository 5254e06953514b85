#include "data/cifar10.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "data/open_dataset.h"
#include "tests/data/idx_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::cifar10_test {
namespace {

using namespace lockstep::testing;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int64_t kRecord = 3073;
constexpr std::array<const char*, 6> kFiles = {"data_batch_1.bin",
                                               "data_batch_2.bin",
                                               "data_batch_3.bin",
                                               "data_batch_4.bin",
                                               "data_batch_5.bin",
                                               "test_batch.bin"};

// Zeros, which take no room on the disk.
void write_zeros(const fs::path& path, int64_t bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).close();
  fs::resize_file(path, static_cast<uintmax_t>(bytes));
}

void put(const fs::path& path, int64_t offset, const Bytes& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offset);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

template <class F>
std::string data_error(F&& function) {
  try {
    function();
  } catch (const DataError& error) {
    return format_error(error);
  }
  return "no error";
}

// Red counts up, green down, blue is red twice.
Bytes planes() {
  Bytes bytes;
  for (int i = 0; i < 1024; ++i) bytes.push_back(static_cast<uint8_t>(i));
  for (int i = 0; i < 1024; ++i) bytes.push_back(static_cast<uint8_t>(255 - i));
  for (int i = 0; i < 1024; ++i) bytes.push_back(static_cast<uint8_t>(2 * i + 1));
  return bytes;
}

// One file of zeros.
class Cifar10File : public ::testing::Test {
 protected:
  Cifar10File() { write_zeros(path(), Cifar10::kFileBytes); }

  fs::path path() const { return temporary_.path() / "batch.bin"; }
  Cifar10 open() const { return Cifar10("cifar10/test", {path()}); }
  std::string error() const {
    return data_error([&] { open(); });
  }

 private:
  TempDir temporary_;
};

TEST_F(Cifar10File, PlanesBecomePixels) {
  put(path(), 7 * kRecord, {9});
  put(path(), 7 * kRecord + 1, planes());
  const Cifar10 set = open();
  EXPECT_EQ(set.size(), 10000);
  EXPECT_EQ(set.classes(), 10);
  EXPECT_EQ(set.image_shape(), (ImageShape{3, 32, 32}));
  EXPECT_EQ(set.label(7), 9);
  EXPECT_EQ(set.label(6), 0);
  Bytes pixels(3072);
  set.read(7, pixels);
  for (int i = 0; i < 1024; ++i) {
    const auto at = static_cast<size_t>(3 * i);
    ASSERT_EQ(pixels[at], static_cast<uint8_t>(i)) << i;
    ASSERT_EQ(pixels[at + 1], static_cast<uint8_t>(255 - i)) << i;
    ASSERT_EQ(pixels[at + 2], static_cast<uint8_t>(2 * i + 1)) << i;
  }
  set.read(8, pixels);
  EXPECT_EQ(pixels, Bytes(3072));
}

TEST_F(Cifar10File, DigestSeesEveryByte) {
  const std::string zeros = open().digest();
  EXPECT_EQ(zeros.size(), 16U);
  EXPECT_EQ(open().digest(), zeros);
  for (const int64_t offset : {int64_t{0}, int64_t{1}, Cifar10::kFileBytes - 1}) {
    put(path(), offset, {1});
    EXPECT_NE(open().digest(), zeros) << offset;
    put(path(), offset, {0});
  }
}

TEST_F(Cifar10File, ShortAndLongFilesAreRefused) {
  for (const int64_t bytes : {int64_t{0}, int64_t{3073}, Cifar10::kFileBytes - 1}) {
    write_zeros(path(), bytes);
    EXPECT_EQ(error(),
              fmt::format("lockstep: error: {} is truncated\n"
                          "  why: it holds {} bytes, expected 30730000\n"
                          "  try: unpack cifar-10-binary.tar.gz again\n",
                          path().string(),
                          bytes));
  }
  for (const int64_t more : {1, 100}) {
    write_zeros(path(), Cifar10::kFileBytes + more);
    EXPECT_THAT(error(), HasSubstr(path().string() + " is too long"));
    EXPECT_THAT(error(),
                HasSubstr(fmt::format("it holds {} bytes, expected 30730000", 30730000 + more)));
  }
}

TEST_F(Cifar10File, ALabelAboveNineIsRefused) {
  put(path(), 9999 * kRecord, {10});
  EXPECT_THAT(error(), HasSubstr(path().string() + " holds a label out of range"));
  EXPECT_THAT(error(), HasSubstr("record 9999 has label 10, expected 0 to 9"));
}

TEST_F(Cifar10File, AFileCutShortMeanwhileIsAnError) {
  const Cifar10 set = open();
  Bytes pixels(3072);
  set.read(9999, pixels);
  fs::resize_file(path(), static_cast<uintmax_t>(9999 * kRecord + 3072));
  set.read(9998, pixels);
  const std::string error = data_error([&] { set.read(9999, pixels); });
  EXPECT_THAT(error, HasSubstr(path().string() + " is truncated"));
  EXPECT_THAT(error, HasSubstr(fmt::format("it holds {} bytes", 9999 * kRecord + 3072)));
}

TEST_F(Cifar10File, CannotBeAFolderOrBeAbsent) {
  fs::remove(path());
  EXPECT_THAT(error(), HasSubstr("cannot open " + path().string()));
  fs::create_directories(path());
  EXPECT_THAT(error(), HasSubstr("cannot read " + path().string()));
}

TEST_F(Cifar10File, ThreadsMayReadAtOnce) {
  put(path(), 1, planes());
  put(path(), 5000 * kRecord + 1, Bytes(3072, 77));
  const Cifar10 set = open();
  Bytes first(3072);
  set.read(0, first);
  std::array<int, 3> wrong{};
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&set, &first, &count] {
      Bytes pixels(3072);
      for (int i = 0; i < 200; ++i) {
        set.read(5000, pixels);
        count += pixels == Bytes(3072, 77) ? 0 : 1;
        set.read(0, pixels);
        count += pixels == first ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 3>{}));
}

// Five training files and one to test, each marked by its first label and pixel.
class Cifar10Folder : public ::testing::Test {
 protected:
  fs::path root() const { return temporary_.path(); }
  fs::path bin() const { return root() / "cifar-10-batches-bin"; }
  void write_set(const fs::path& folder) const {
    uint8_t number = 0;
    for (const char* file : kFiles) {
      ++number;
      write_zeros(folder / file, Cifar10::kFileBytes);
      put(folder / file, 0, {number, static_cast<uint8_t>(10 * number)});
    }
  }
  std::string error() const {
    return data_error([&] { open_dataset("cifar10", root()); });
  }

 private:
  TempDir temporary_;
};

TEST_F(Cifar10Folder, FilesFollowEachOther) {
  write_set(bin());
  const DatasetPair pair = open_dataset("auto", root());
  EXPECT_EQ(pair.train->name(), "cifar10/train");
  EXPECT_EQ(pair.test->name(), "cifar10/test");
  EXPECT_EQ(pair.train->size(), 50000);
  EXPECT_EQ(pair.test->size(), 10000);
  EXPECT_NE(pair.train->digest(), pair.test->digest());
  Bytes pixels(3072);
  for (int64_t file = 0; file < 5; ++file) {
    EXPECT_EQ(pair.train->label(10000 * file), file + 1);
    pair.train->read(10000 * file, pixels);
    EXPECT_EQ(pixels[0], 10 * (file + 1));
  }
  EXPECT_EQ(pair.test->label(0), 6);
}

TEST_F(Cifar10Folder, MayBeNamedItself) {
  for (const char* file : kFiles) write_zeros(root() / file, 1);
  EXPECT_EQ(find_cifar10_folder(root()), root());
  EXPECT_EQ(detect_dataset(root()), "cifar10");
  EXPECT_THAT(error(), HasSubstr("data_batch_1.bin is truncated"));
}

TEST_F(Cifar10Folder, MissingFilesAreNamed) {
  for (const char* file : kFiles) write_zeros(bin() / file, 1);
  fs::remove(bin() / "data_batch_3.bin");
  fs::remove(bin() / "test_batch.bin");
  EXPECT_THAT(error(), HasSubstr("cifar10 in " + bin().string() + " is not complete"));
  EXPECT_THAT(error(), HasSubstr("missing: data_batch_3.bin, test_batch.bin\n"));
}

TEST_F(Cifar10Folder, NothingFoundTellsWhereItLooked) {
  EXPECT_THAT(error(), HasSubstr("no cifar10 in " + root().string()));
  EXPECT_THAT(error(), HasSubstr("test_batch.bin in " + bin().string() + ", " + root().string()));
}

TEST_F(Cifar10Folder, PicklesAreRefusedWithTheArchiveToFetch) {
  fs::create_directories(root() / "cifar-10-batches-py");
  EXPECT_THAT(error(), HasSubstr("is Python's pickle form"));
  EXPECT_THAT(error(), HasSubstr("cifar-10-binary.tar.gz"));
  EXPECT_THAT(error(), HasSubstr(bin().string()));
  EXPECT_THAT(data_error([&] { open_dataset("auto", root()); }), HasSubstr("pickle form"));
  fs::remove(root() / "cifar-10-batches-py");
  write_zeros(root() / "data_batch_1", 1);
  EXPECT_THAT(error(), HasSubstr("pickle form"));
}

}  // namespace
}  // namespace lockstep::data::cifar10_test
