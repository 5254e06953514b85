#include "data/resample.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/image_files.h"

namespace lockstep::data::resample_test {
namespace {

using namespace lockstep::testing;

// The golden picture's part that the result depends on.
Image part_of_picture(const Region& region) {
  const GoldenCase golden = golden_case("image_resizes", "image");
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

std::vector<uint8_t> resampled(const Resample& what, bool flip = false) {
  std::vector<uint8_t> to(static_cast<size_t>(what.window.height * what.window.width * 3));
  resample(part_of_picture(needed(what)), what, flip, to);
  return to;
}

Resample resample_of(const GoldenCase& golden) {
  const auto number = [&](const char* name) { return static_cast<int64_t>(golden.number(name)); };
  const ImageSize size{number("to_height"), number("to_width")};
  return {.box = {number("top"), number("left"), number("height"), number("width")},
          .size = size,
          .window = whole(size)};
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
  for (const GoldenCase& golden : golden_cases("image_resizes")) {
    if (golden.name() == "image") continue;
    SCOPED_TRACE(golden.name());
    EXPECT_EQ(resampled(resample_of(golden)), bytes_of(golden.tensor("resized")));
  }
}

TEST(Resample, GivesAWindowOfTheResultFromLessOfTheImage) {
  for (const GoldenCase& golden : golden_cases("image_resizes")) {
    if (golden.name() == "image") continue;
    SCOPED_TRACE(golden.name());
    Resample what = resample_of(golden);
    what.window = {.top = what.size.height / 3,
                   .left = what.size.width / 4,
                   .height = (what.size.height + 2) / 3,
                   .width = (what.size.width + 3) / 4};
    for (const bool flip : {false, true}) {
      EXPECT_EQ(resampled(what, flip),
                window_of(bytes_of(golden.tensor("resized")), what.size, what.window, flip));
    }
    EXPECT_LE(needed(what).height, what.box.height);
    if (what.box.width > 20 && what.size.width > 4 && what.size.width < what.box.width) {
      EXPECT_LT(needed(what).width, what.box.width);
    }
  }
}

}  // namespace
}  // namespace lockstep::data::resample_test
