#include "data/codecs/decode_image.h"

#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>

#include "tests/support/image_files.h"

namespace lockstep::data {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace lockstep::testing;

std::string why_not(const std::vector<uint8_t>& file) {
  try {
    (void)decode(file);
  } catch (const UnreadableImage& error) {
    return error.why();
  }
  return "";
}

TEST(DecodeImage, GivesPillowsPixels) {
  for (const GoldenCase& golden : golden_cases("image_files")) {
    SCOPED_TRACE(golden.name());
    const Image image = decode(bytes_of(golden.tensor("file")));
    EXPECT_EQ(image.region.width, static_cast<int64_t>(golden.number("width")));
    EXPECT_EQ(image.region.height, static_cast<int64_t>(golden.number("height")));
    const std::vector<uint8_t> want = bytes_of(golden.tensor("rgb"));
    ASSERT_EQ(image.pixels.size(), want.size());
    const int most = golden.name().starts_with("png") ? 0 : 2;  // libjpegs differ
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_LE(std::abs(image.pixels[i] - want[i]), most) << "byte " << i;
    }
  }
}

TEST(DecodeImage, DecodesAPartAsItIsInTheWhole) {
  for (const GoldenCase& golden : golden_cases("image_files")) {
    SCOPED_TRACE(golden.name());
    const std::vector<uint8_t> file = bytes_of(golden.tensor("file"));
    const Image all = decode(file);
    for (const Region& part : {Region{0, 0, 1, 1},
                               Region{36, 52, 1, 1},
                               Region{16, 16, 16, 16},
                               Region{7, 31, 13, 17},
                               Region{17, 8, 20, 45}}) {
      const Image got = decode(file, [&](const ImageSize&) { return part; });
      EXPECT_EQ(got.region, part);
      for (int64_t y = part.top; y < part.top + part.height; ++y) {
        ASSERT_TRUE(std::equal(got.row(y), got.row(y) + part.width * 3, all.row(y) + part.left * 3))
            << "row " << y << " of " << part.height << "x" << part.width;
      }
    }
  }
}

TEST(DecodeImage, RefusesAFileThatEndsEarly) {
  for (const GoldenCase& golden : golden_cases("image_files")) {
    SCOPED_TRACE(golden.name());
    const std::vector<uint8_t> file = bytes_of(golden.tensor("file"));
    for (size_t length = 0; length < file.size() * 3 / 4; length += 7) {
      EXPECT_NE(why_not({file.begin(), file.begin() + static_cast<int64_t>(length)}), "");
    }
  }
}

TEST(DecodeImage, SurvivesChangedBytes) {
  for (const GoldenCase& golden : golden_cases("image_files")) {
    SCOPED_TRACE(golden.name());
    const std::vector<uint8_t> file = bytes_of(golden.tensor("file"));
    for (size_t i = 3; i < file.size(); i += 1 + file.size() / 150) {
      std::vector<uint8_t> changed = file;
      changed[i] ^= static_cast<uint8_t>(1U << (i % 8));
      (void)why_not(changed);
    }
  }
}

TEST(DecodeImage, SaysWhatIsWrong) {
  EXPECT_EQ(why_not({}), "the file is empty");
  EXPECT_EQ(why_not({'G', 'I', 'F', '8', '9', 'a'}), "it is neither JPEG nor PNG");
  std::vector<uint8_t> cut = image_file("jpeg_420");
  cut.resize(cut.size() / 2);
  EXPECT_EQ(why_not(cut), "the file ends before the image does");
  cut = image_file("png_rgb");
  cut.resize(cut.size() / 2);
  EXPECT_EQ(why_not(cut), "the file ends before the image does");
}

// Height and width in the frame header, SOF0: FF C0, length, precision, height, width.
std::vector<uint8_t> jpeg_claiming(unsigned height, unsigned width) {
  std::vector<uint8_t> file = image_file("jpeg_420");
  const std::vector<uint8_t> frame = {0xFF, 0xC0};
  const auto place = std::ranges::search(file, frame).begin() + 5;
  place[0] = static_cast<uint8_t>(height >> 8);
  place[1] = static_cast<uint8_t>(height);
  place[2] = static_cast<uint8_t>(width >> 8);
  place[3] = static_cast<uint8_t>(width);
  return file;
}

TEST(DecodeImage, RefusesHugeSizesBeforeTakingMemory) {
  EXPECT_THAT(why_not(jpeg_claiming(65500, 65500)), HasSubstr("it claims 65500x65500 pixels"));
  EXPECT_THAT(why_not(jpeg_claiming(20, 0)), AnyOf(HasSubstr("Empty"), HasSubstr("no pixels")));
  std::vector<uint8_t> png = image_file("png_rgb");
  png[18] = 0x7F;  // the width's third byte
  EXPECT_NE(why_not(png), "");
}

}  // namespace
}  // namespace lockstep::data
