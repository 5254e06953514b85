#include "data/idx.h"

#include <functional>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/data/idx_files.h"
#include "tests/support/temp_dir.h"

namespace lockstep::data::idx_test {
namespace {

using namespace lockstep::testing;
using ::testing::HasSubstr;

// What the error of reading a 4-image set says, after one file was replaced.
class IdxErrors : public ::testing::Test {
 protected:
  IdxErrors() { write_tiny_set(folder()); }

  std::filesystem::path folder() const { return temporary_.path() / "MNIST/raw"; }
  std::filesystem::path images() const { return folder() / "train-images-idx3-ubyte"; }
  std::filesystem::path labels() const { return folder() / "train-labels-idx1-ubyte"; }
  std::filesystem::path gzipped_images() const { return folder() / "t10k-images-idx3-ubyte.gz"; }

  std::string error() const {
    try {
      open_idx_pair(temporary_.path(), "mnist");
    } catch (const DataError& error) {
      return format_error(error);
    }
    return "no error";
  }

  Remedy remedy() const {
    try {
      open_idx_pair(temporary_.path(), "mnist");
    } catch (const DataError& error) {
      return error.remedy();
    }
    return Remedy::kNone;
  }

  TempDir temporary_;
};

TEST_F(IdxErrors, NoneInACompleteSet) {
  EXPECT_EQ(error(), "no error");
}

TEST_F(IdxErrors, MissingFilesAreListed) {
  std::filesystem::remove(labels());
  std::filesystem::remove(gzipped_images());
  EXPECT_THAT(error(), HasSubstr("mnist in " + folder().string() + " is not complete"));
  EXPECT_THAT(error(),
              HasSubstr("missing: train-labels-idx1-ubyte[.gz], t10k-images-idx3-ubyte[.gz]\n"));
}

TEST_F(IdxErrors, NothingFoundTellsWhereItLooked) {
  std::filesystem::remove_all(folder());
  for (const auto& place : {folder(), temporary_.path() / "raw", temporary_.path()}) {
    EXPECT_THAT(error(), HasSubstr(place.string()));
  }
  EXPECT_THAT(error(), HasSubstr("t10k-labels-idx1-ubyte (or .gz)"));
  EXPECT_EQ(remedy(), Remedy::kDigits);
}

TEST_F(IdxErrors, Truncated) {
  Bytes bytes = tiny_images(4);
  bytes.pop_back();
  write_file(images(), bytes);
  EXPECT_THAT(error(), HasSubstr(images().string() + " is truncated"));
  EXPECT_THAT(error(), HasSubstr("it holds 39 bytes, expected 40"));
  EXPECT_EQ(remedy(), Remedy::kDigits);
}

TEST_F(IdxErrors, TruncatedHeader) {
  for (const size_t length : {0U, 3U, 15U}) {
    Bytes bytes = tiny_images(4);
    bytes.resize(length);
    write_file(images(), bytes);
    EXPECT_THAT(error(), HasSubstr(fmt::format("it holds {} bytes, expected 16", length)));
  }
}

TEST_F(IdxErrors, TooLong) {
  Bytes bytes = tiny_labels(4);
  bytes.push_back(0);
  write_file(labels(), bytes);
  EXPECT_THAT(error(), HasSubstr(labels().string() + " is too long"));
  EXPECT_THAT(error(), HasSubstr("goes on after the 12 bytes"));
}

TEST_F(IdxErrors, WrongMagic) {
  write_file(images(), tiny_labels(4));
  EXPECT_THAT(error(), HasSubstr(images().string() + " is not an IDX file of images"));
  EXPECT_THAT(error(), HasSubstr("its magic number is 0x00000801, expected 0x00000803"));
  write_file(images(), {'<', 'h', 't', 'm', 'l', '>'});
  EXPECT_THAT(error(), HasSubstr("0x3c68746d, expected 0x00000803"));
}

TEST_F(IdxErrors, LabelOutOfRange) {
  write_file(labels(), idx(0x801, {4}, {0, 9, 10, 1}));
  EXPECT_THAT(error(), HasSubstr("label 2 is 10, expected 0 to 9"));
}

TEST_F(IdxErrors, CountsDiffer) {
  write_file(labels(), tiny_labels(5));
  EXPECT_THAT(error(), HasSubstr("4 images and 5 labels"));
  EXPECT_THAT(error(), HasSubstr(images().string()));
  EXPECT_THAT(error(), HasSubstr(labels().string()));
}

TEST_F(IdxErrors, NoImages) {
  write_file(images(), tiny_images(0));
  EXPECT_THAT(error(), HasSubstr("dimension 0 is 0, expected 1 to 2147483648"));
}

TEST_F(IdxErrors, AbsurdDimensions) {
  write_file(images(), idx(0x803, {0x80000001U, 2, 3}, {}));
  EXPECT_THAT(error(), HasSubstr("dimension 0 is 2147483649, expected 1 to 2147483648"));
  write_file(images(), idx(0x803, {4, 0, 3}, {}));
  EXPECT_THAT(error(), HasSubstr("dimension 1 is 0, expected 1 to 16384"));
  write_file(images(), idx(0x803, {4, 2, 0xffffffffU}, {}));
  EXPECT_THAT(error(), HasSubstr("dimension 2 is 4294967295, expected 1 to 16384"));
}

TEST_F(IdxErrors, PromisesOfPetabytesTakeNoMemory) {
  write_file(images(), idx(0x803, {0x80000000U, 16384, 16384}, Bytes(24)));
  EXPECT_THAT(error(), HasSubstr("it holds 40 bytes, expected 576460752303423504"));
}

TEST_F(IdxErrors, GzipThatInflatesBeyondItsHeaderStopsEarly) {
  Bytes bomb = tiny_images(3);
  bomb.resize(size_t{1} << 23);
  write_gzip(gzipped_images(), bomb);
  EXPECT_THAT(error(), HasSubstr(gzipped_images().string() + " is too long"));
  EXPECT_THAT(error(), HasSubstr("goes on after the 34 bytes"));
}

TEST_F(IdxErrors, DamagedGzip) {
  const Bytes good = testing::read_file(gzipped_images());
  Bytes wrong_checksum = good;
  wrong_checksum[good.size() - 8] ^= 1;
  write_file(gzipped_images(), wrong_checksum);
  EXPECT_THAT(error(), HasSubstr(gzipped_images().string() + " is damaged"));
  EXPECT_THAT(error(), HasSubstr("gzip: "));
  Bytes wrong_block = good;
  wrong_block[10] = 0xff;
  write_file(gzipped_images(), wrong_block);
  EXPECT_THAT(error(), HasSubstr(gzipped_images().string() + " is damaged"));
}

TEST_F(IdxErrors, TruncatedGzip) {
  Bytes bytes = testing::read_file(gzipped_images());
  for (const size_t cut : {1U, 9U}) {  // in the trailer, in the data
    bytes.resize(bytes.size() - cut);
    write_file(gzipped_images(), bytes);
    EXPECT_THAT(error(), HasSubstr(gzipped_images().string() + " is truncated"));
    EXPECT_THAT(error(), HasSubstr("ends in the middle of its gzip data"));
  }
}

TEST_F(IdxErrors, TrainAndTestDiffer) {
  write_gzip(gzipped_images(), idx(0x803, {3, 3, 2}, Bytes(18)));
  EXPECT_THAT(error(), HasSubstr("their images are 2 x 3 and 3 x 2"));
}

TEST(Idx, ReadsEveryLayoutPlainAndGzipped) {
  const TempDir temporary;
  int number = 0;
  for (const char* folder : {"MNIST/raw", "raw", "."}) {
    const auto dir = temporary.path() / std::to_string(number++);
    write_tiny_set(dir / folder);
    const DatasetPair pair = open_idx_pair(dir, "mnist");
    EXPECT_EQ(pair.train->name(), "mnist/train");
    EXPECT_EQ(pair.test->name(), "mnist/test");
    EXPECT_EQ(pair.train->size(), 4);
    EXPECT_EQ(pair.test->size(), 3);
    EXPECT_EQ(pair.train->classes(), 10);
    EXPECT_EQ(pair.test->image_shape(), (ImageShape{1, 2, 3}));
    EXPECT_EQ(pair.train->label(3), 3);
    Bytes pixels(6);
    pair.test->read(2, pixels);
    EXPECT_EQ(pixels, (Bytes{112, 113, 114, 115, 116, 117}));
  }
}

TEST(Idx, FashionMnistHasItsOwnFolder) {
  const TempDir temporary;
  write_tiny_set(temporary.path() / "FashionMNIST/raw");
  EXPECT_EQ(open_idx_pair(temporary.path(), "fashion-mnist").train->name(), "fashion-mnist/train");
  EXPECT_THROW(open_idx_pair(temporary.path(), "mnist"), DataError);
}

TEST(Idx, DigestSeesEveryLabelAndPixel) {
  const TempDir temporary;
  const auto digest = [&](const Bytes& images, const Bytes& labels) {
    write_file(temporary.path() / "images", images);
    write_file(temporary.path() / "labels", labels);
    return IdxDataset("set", temporary.path() / "images", temporary.path() / "labels").digest();
  };
  const std::string base = digest(tiny_images(4), tiny_labels(4));
  EXPECT_EQ(base.size(), 16U);
  EXPECT_EQ(digest(tiny_images(4), tiny_labels(4)), base);
  Bytes images = tiny_images(4);
  images.back() ^= 1;
  EXPECT_NE(digest(images, tiny_labels(4)), base);
  Bytes labels = tiny_labels(4);
  labels.back() ^= 1;
  EXPECT_NE(digest(tiny_images(4), labels), base);
}

}  // namespace
}  // namespace lockstep::data::idx_test
