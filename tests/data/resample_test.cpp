#include "data/resample.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/image_files.h"

namespace lockstep::data::resample_test {
namespace {

using namespace lockstep::testing;

// A region of a golden image.
Image part_of(const std::string& name, const Region& region) {
  const GoldenCase golden = golden_case("image_resizes", name);
  Image all{.region = {.height = static_cast<int64_t>(golden.number("height")),
                       .width = static_cast<int64_t>(golden.number("width"))},
            .pixels = bytes_of(golden.tensor("image"))};
  Image part{.region = region, .pixels = {}};
  part.pixels.resize(static_cast<size_t>(region.height * region.width * 3));
  for (int64_t y = region.top; y < region.top + region.height; ++y) {
    std::copy_n(all.row(y) + region.left * 3, region.width * 3, part.row(y));
  }
  return part;
}

// From the part of the golden image that the result depends on, and no more.
std::vector<uint8_t> resampled(const GoldenCase& golden, const Resample& what, bool flip = false) {
  std::vector<uint8_t> to(static_cast<size_t>(what.window.height * what.window.width * 3));
  resample(part_of(golden.text("of"), needed(what)), what, flip, to);
  return to;
}

// Those of resizes, each with its name in the trace.
template <class Check>
void for_each_resize(const Check& check) {
  int count = 0;
  for (const GoldenCase& golden : golden_cases("image_resizes")) {
    if (!golden.has("resized")) continue;
    SCOPED_TRACE(golden.name());
    check(golden);
    ++count;
  }
  EXPECT_EQ(count, 40);
}

Resample resample_of(const GoldenCase& golden) {
  const auto number = [&](const char* name) { return static_cast<int64_t>(golden.number(name)); };
  const ImageSize size{number("to_height"), number("to_width")};
  return {
      .box = {number("top"), number("left"), number("height"), number("width")},
      .size = size,
      .window = whole(size),
      .by = golden.text("by") == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear};
}

// Pixels [.., ..) of a result of `size`, mirrored or not.
std::vector<uint8_t> window_of(const std::vector<uint8_t>& all,
                               const ImageSize& size,
                               const Region& window,
                               bool flip) {
  std::vector<uint8_t> part;
  for (int64_t y = window.top; y < window.top + window.height; ++y) {
    for (int64_t k = 0; k < window.width; ++k) {
      const int64_t x = window.left + (flip ? window.width - 1 - k : k);
      const auto pixel = all.begin() + (y * size.width + x) * 3;
      part.insert(part.end(), pixel, pixel + 3);
    }
  }
  return part;
}

TEST(Resample, GivesPillowsBytes) {
  for_each_resize([](const GoldenCase& golden) {
    EXPECT_EQ(resampled(golden, resample_of(golden)), bytes_of(golden.tensor("resized")));
  });
}

TEST(Resample, GivesAWindowOfTheResultFromLessOfTheImage) {
  for_each_resize([](const GoldenCase& golden) {
    Resample what = resample_of(golden);
    what.window = {.top = what.size.height / 3,
                   .left = what.size.width / 4,
                   .height = (what.size.height + 2) / 3,
                   .width = (what.size.width + 3) / 4};
    for (const bool flip : {false, true}) {
      EXPECT_EQ(resampled(golden, what, flip),
                window_of(bytes_of(golden.tensor("resized")), what.size, what.window, flip));
    }
    EXPECT_LE(needed(what).height, what.box.height);
    if (what.box.width > 20 && what.size.width > 4 && what.size.width < what.box.width) {
      EXPECT_LT(needed(what).width, what.box.width);
    }
  });
}

// Bicubic weights are about twice as wide as bilinear ones.
TEST(Resample, NeedsMoreOfTheImageForBicubic) {
  Resample what = {.box = {.height = 400, .width = 800},
                   .size = {100, 100},
                   .window = {.top = 50, .left = 50, .height = 1, .width = 1}};
  EXPECT_EQ(needed(what), (Region{198, 396, 8, 16}));
  what.by = Interpolation::kBicubic;
  EXPECT_EQ(needed(what), (Region{194, 388, 16, 32}));
  what.window = {.height = 1, .width = 1};
  EXPECT_EQ(needed(what), (Region{0, 0, 10, 20})) << "cut off at the box";
}

// A plain image stays so: weights add up to 1, also where the box ends within a pixel.
TEST(Resample, OfAShrunkImageKeepsItsColor) {
  const Resample what = {.box = {.top = 3, .left = 5, .height = 32, .width = 32},
                         .size = {4, 4},
                         .window = {.height = 4, .width = 4},
                         .by = Interpolation::kBicubic};
  const Resample shrunk = shrunk_by(2, what, {.height = 20, .width = 20});
  EXPECT_EQ(shrunk.by, Interpolation::kBicubic);
  Image image{.region = needed(shrunk), .pixels = {}};
  image.pixels.resize(static_cast<size_t>(image.region.height * image.region.width * 3));
  for (int64_t y = 0; y < image.region.height; ++y) {
    std::fill_n(image.row(image.region.top + y), image.region.width * 3, uint8_t{200});
  }
  std::vector<uint8_t> to(4 * 4 * 3);
  resample(image, shrunk, false, to);
  EXPECT_THAT(to, ::testing::Each(200));
}

}  // namespace
}  // namespace lockstep::data::resample_test
