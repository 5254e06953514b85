#include "data/codecs/decode_image.h"

#include <algorithm>
#include <cmath>
#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <jpeglib.h>

#include "data/resample.h"
#include "tests/support/image_files.h"

namespace lockstep::data::decode_image_test {
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

// A progressive file without the scans after the first: libjpeg smooths its blocks.
std::vector<uint8_t> jpeg_of_the_first_scan() {
  std::vector<uint8_t> file = image_file("jpeg_progressive");
  const std::vector<uint8_t> start = {0xFF, 0xDA};
  auto end = std::ranges::search(file, start).end();
  while (end[0] != 0xFF || end[1] == 0) ++end;  // to the next marker
  file.erase(end, file.end() - 2);
  return file;
}

// Chroma at 1/across x 1/down of the size.
std::vector<uint8_t> jpeg_sampled(int across, int down) {
  constexpr JDIMENSION kHeight = 75;
  constexpr JDIMENSION kWidth = 130;
  jpeg_error_mgr errors;
  jpeg_compress_struct codec{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &bytes, &size);
  codec.image_height = kHeight;
  codec.image_width = kWidth;
  codec.input_components = 3;
  codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&codec);
  codec.comp_info[0].h_samp_factor = across;
  codec.comp_info[0].v_samp_factor = down;
  jpeg_start_compress(&codec, TRUE);
  std::vector<uint8_t> row(size_t{kWidth} * 3);
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint8_t>(i * i / 7 + y * 5);
    uint8_t* const line = row.data();
    jpeg_write_scanlines(&codec, const_cast<JSAMPARRAY>(&line), 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  const std::vector<uint8_t> file(bytes, bytes + size);
  std::free(bytes);  // NOLINT(cppcoreguidelines-no-malloc): libjpeg's
  return file;
}

// A photo in the cache is decoded whole, another in part: training must not depend on which.
TEST(DecodeImage, DecodesAPartAsItIsInTheWholeForEachShrinkAndChroma) {
  const std::vector<uint8_t> files[] = {jpeg_of_the_first_scan(),
                                        jpeg_sampled(2, 2),
                                        jpeg_sampled(4, 1),
                                        jpeg_sampled(1, 4),
                                        jpeg_sampled(4, 2),
                                        jpeg_sampled(2, 4)};
  for (size_t f = 0; f < std::size(files); ++f) {
    const auto bytes = std::as_bytes(std::span(files[f]));
    for (const int shrink : {1, 2, 4}) {
      const auto by = [&](const ImageSize&) { return shrink; };
      Image all;
      decode_image(bytes, by, [](const ImageSize& size) { return whole(size); }, all);
      for (int64_t left = 0; left + 4 <= all.region.width; ++left) {
        Image part;
        const Region region = {1, left, all.region.height - 2, 4};
        decode_image(bytes, by, [&](const ImageSize&) { return region; }, part);
        for (int64_t y = 1; y <= region.height; ++y) {
          ASSERT_TRUE(std::equal(part.row(y), part.row(y) + 12, all.row(y) + left * 3))
              << "file " << f << " at 1/" << shrink << ", row " << y << ", column " << left;
        }
      }
    }
  }
}

TEST(DecodeImage, WhetherACutFileIsRefusedDoesNotDependOnThePart) {
  std::vector<uint8_t> file = image_file("jpeg_420");
  file.resize(file.size() * 9 / 10);
  const std::string why = why_not(file);
  EXPECT_NE(why, "");
  for (const Region& part : {Region{0, 0, 1, 1}, Region{0, 8, 20, 20}, Region{36, 0, 1, 1}}) {
    try {
      (void)decode(file, [&](const ImageSize&) { return part; });
      ADD_FAILURE() << "rows from " << part.top << " are decoded";
    } catch (const UnreadableImage& error) {
      EXPECT_EQ(error.why(), why);
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

// A changed file is refused with its reason or gives the pixels of the size that it then claims.
TEST(DecodeImage, SurvivesChangedBytes) {
  int decoded = 0, refused = 0;
  for (const GoldenCase& golden : golden_cases("image_files")) {
    SCOPED_TRACE(golden.name());
    const std::vector<uint8_t> file = bytes_of(golden.tensor("file"));
    for (size_t i = 3; i < file.size(); i += 1 + file.size() / 150) {
      std::vector<uint8_t> changed = file;
      changed[i] ^= static_cast<uint8_t>(1U << (i % 8));
      try {
        const Image image = decode(changed);
        EXPECT_EQ(std::ssize(image.pixels), image.region.height * image.region.width * 3) << i;
        ++decoded;
      } catch (const UnreadableImage& error) {
        EXPECT_FALSE(error.why().empty()) << i;
        ++refused;
      }
    }
  }
  EXPECT_GT(decoded, 0);
  EXPECT_GT(refused, 0);
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
  EXPECT_THAT(why_not(jpeg_claiming(65535, 65535)), HasSubstr("65500"));  // libjpeg's own limit
  EXPECT_THAT(why_not(jpeg_claiming(20, 0)), AnyOf(HasSubstr("Empty"), HasSubstr("no pixels")));
  std::vector<uint8_t> png = image_file("png_rgb");
  png[18] = png[22] = 0x7F;  // of 53 x 37: neither side is beyond libpng's limit, but the area is
  EXPECT_THAT(why_not(png), HasSubstr("it claims 32565x32549 pixels"));
}

// The last scan of a progressive file again and again.
std::vector<uint8_t> jpeg_of_scans(int more, unsigned height = 0, unsigned width = 0) {
  std::vector<uint8_t> file = image_file("jpeg_progressive");
  const std::vector<uint8_t> start = {0xFF, 0xDA};
  const auto last = std::ranges::find_end(file, start).begin();
  const std::vector<uint8_t> scan(last, file.end() - 2);
  if (height > 0) {
    const std::vector<uint8_t> frame = {0xFF, 0xC2};
    const auto place = std::ranges::search(file, frame).begin() + 5;
    place[0] = static_cast<uint8_t>(height >> 8);
    place[1] = static_cast<uint8_t>(height);
    place[2] = static_cast<uint8_t>(width >> 8);
    place[3] = static_cast<uint8_t>(width);
  }
  const std::vector<uint8_t> end(file.end() - 2, file.end());
  file.resize(file.size() - 2);
  for (int i = 0; i < more; ++i) file.insert(file.end(), scan.begin(), scan.end());
  file.insert(file.end(), end.begin(), end.end());
  return file;
}

TEST(DecodeImage, RefusesThousandsOfScans) {
  EXPECT_EQ(why_not(jpeg_of_scans(100)), "");
  EXPECT_EQ(why_not(jpeg_of_scans(3000)), "it has too many progressive scans");
  EXPECT_EQ(why_not(jpeg_of_scans(485, 1500, 1500)), "it has too many progressive scans");
}

// In decibels, of 8 bits.
double psnr(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(a[i] - b[i], 2);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / sum);
}

// What `box` of the photo looks like at side x side pixels, decoded at 1/shrink of its size.
std::vector<uint8_t> at_side(const std::vector<uint8_t>& file, int shrink, int64_t side) {
  std::vector<uint8_t> pixels(static_cast<size_t>(side * side * 3));
  Resample what;
  ImageSize photo;
  Image image;
  decode_image(
      std::as_bytes(std::span(file)),
      [&](const ImageSize& size) {
        photo = size;
        return shrink;
      },
      [&](const ImageSize& shrunk) {
        what = {.box = {3, 5, photo.height - 4, photo.width - 7},
                .size = {side, side},
                .window = {.height = side, .width = side}};
        what = shrunk_by(shrink, what, shrunk);
        return needed(what);
      },
      image);
  resample(image, what, false, pixels);
  return pixels;
}

TEST(DecodeImage, ShrinksAndKeepsItsPart) {
  const std::vector<uint8_t> file = image_file("jpeg_420");
  for (const int shrink : {2, 4, 8}) {
    const auto by = [&](const ImageSize&) { return shrink; };
    Image all;
    const auto bytes = std::as_bytes(std::span(file));
    decode_image(bytes, by, [](const ImageSize& size) { return whole(size); }, all);
    EXPECT_EQ(all.region, (Region{0, 0, (37 + shrink - 1) / shrink, (53 + shrink - 1) / shrink}));
    Image part;
    decode_image(bytes, by, [](const ImageSize&) { return Region{2, 3, 3, 4}; }, part);
    for (int64_t y = 2; y < 5; ++y) {
      EXPECT_TRUE(std::equal(part.row(y), part.row(y) + 12, all.row(y) + 9)) << shrink;
    }
  }
}

TEST(DecodeImage, ShrunkPhotosLookLikeExactOnes) {
  const char* folder = std::getenv("LOCKSTEP_PHOTOS");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr) GTEST_SKIP() << "LOCKSTEP_PHOTOS names no folder of photos";
  int photos = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".jpg" || ++photos > 40) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<uint8_t> file(std::istreambuf_iterator<char>(in), {});
    for (const int shrink : {2, 4}) {
      const int64_t side = 128 / shrink;
      EXPECT_GE(psnr(at_side(file, shrink, side), at_side(file, 1, side)), 30) << entry.path();
    }
  }
  EXPECT_GT(photos, 0);
}

}  // namespace
}  // namespace lockstep::data::decode_image_test
