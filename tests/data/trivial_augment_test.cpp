#include "data/trivial_augment.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "data/image_random.h"
#include "tests/support/golden.h"

namespace lockstep::data::trivial_augment_test {
namespace {

using testing::GoldenCase;
using Bytes = std::vector<uint8_t>;

class TrivialOps : public ::testing::TestWithParam<size_t> {
 protected:
  PhotoOp op() const { return kTrivialOps.at(GetParam()).op; }
  const GoldenCase golden_ =
      testing::golden_case("trivial_augment", std::string(kTrivialOps.at(GetParam()).name));
};

// The last bit of torch.linspace depends on the width of its machine's vectors.
TEST_P(TrivialOps, HaveTorchvisionsStrengths) {
  const float sign = golden_.number("is_signed") != 0 ? -1 : 1;
  const Tensor want = golden_.tensor("magnitudes");
  for (int64_t bin = 0; bin < 31; ++bin) {
    const float magnitude = want.data<float>()[bin];
    EXPECT_FLOAT_EQ(trivial_change(op(), bin, false).magnitude, magnitude) << bin;
    EXPECT_FLOAT_EQ(trivial_change(op(), bin, true).magnitude, sign * magnitude) << bin;
  }
}

TEST_P(TrivialOps, HavePillowsPixels) {
  const Tensor image = golden_.tensor("image");
  int seen = 0;
  for (int64_t bin = 0; bin < 31; ++bin) {
    for (const bool negative : {false, true}) {
      for (const char* bilinear : {"", "bilinear"}) {
        const std::string name =
            fmt::format("bin{}{}{}", bin, negative ? "negative" : "", bilinear);
        if (!golden_.has(name)) continue;
        const std::span<const uint8_t> from = image.span<uint8_t>();
        Bytes got(from.begin(), from.end());
        TrivialChange what = trivial_change(op(), bin, negative);
        what.bilinear = *bilinear != 0;
        change(what, {16, 16}, got);
        const Tensor want = golden_.tensor(name);
        EXPECT_TRUE(std::ranges::equal(got, want.span<uint8_t>())) << name;
        ++seen;
      }
    }
  }
  EXPECT_GE(seen, 1);
}
INSTANTIATE_TEST_SUITE_P(All,
                         TrivialOps,
                         ::testing::Range(size_t{0}, kTrivialOps.size()),
                         [](const auto& op) { return std::string(kTrivialOps[op.param].name); });

TEST(TrivialAugment, LeavesNoPixelUnwrittenInImagesOfAnyShape) {
  for (const ImageSize& size : {ImageSize{1, 1}, {1, 9}, {9, 1}, {2, 3}}) {
    for (const NamedPhotoOp& each : kTrivialOps) {
      for (const int64_t bin : {0, 15, 30}) {
        Bytes flat(static_cast<size_t>(size.height * size.width * 3), 100);
        change(trivial_change(each.op, bin, true), size, flat);
        EXPECT_EQ(std::ssize(flat), size.height * size.width * 3);
      }
    }
  }
}

TEST(TrivialAugment, DrawsEveryOpAndStrength) {
  std::set<PhotoOp> ops;
  std::set<float> rotations;
  for (int64_t image = 0; image < 20000; ++image) {
    ImageRandom random(1, RandomPurpose::kTrivialAugment, 2, image);
    const TrivialChange drawn = draw_trivial_change(random);
    ops.insert(drawn.op);
    if (drawn.op == PhotoOp::kRotate) rotations.insert(drawn.magnitude);
  }
  EXPECT_EQ(ops.size(), 14U);
  EXPECT_EQ(rotations.size(), 61U);  // 30 in each direction, and none
}

}  // namespace
}  // namespace lockstep::data::trivial_augment_test
