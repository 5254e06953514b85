// Several random changes to the colors and the geometry of a photo, one after another.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>

#include "core/augmentation.h"
#include "data/codecs/image.h"

namespace lockstep::data {

enum class RandOp : uint8_t {
  kAutoContrast,
  kEqualize,
  kInvert,
  kRotate,
  kPosterize,
  kSolarize,
  kSolarizeAdd,
  kColor,
  kContrast,
  kBrightness,
  kSharpness,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY
};
// timm's names, in the order of its table. Where changes increase with the magnitude, colors' are
// "PosterizeIncreasing" and so on there.
inline constexpr std::array<std::string_view, 15> kRandOpNames = {"AutoContrast",
                                                                  "Equalize",
                                                                  "Invert",
                                                                  "Rotate",
                                                                  "Posterize",
                                                                  "Solarize",
                                                                  "SolarizeAdd",
                                                                  "Color",
                                                                  "Contrast",
                                                                  "Brightness",
                                                                  "Sharpness",
                                                                  "ShearX",
                                                                  "ShearY",
                                                                  "TranslateXRel",
                                                                  "TranslateYRel"};

struct RandChange {
  RandOp op = RandOp::kAutoContrast;
  double argument = 0;   // in the op's own unit: degrees, a part of the image, a factor, a value
  bool bicubic = false;  // geometry: between pixels, instead of bilinear
};

// The change of strength `level`, of 10; `negative` turns it round where the op has a direction.
RandChange rand_change(RandOp op, double level, bool increasing, bool negative);

// One layer of the policy: false where it changes nothing. Random: float uniform(float low, float
// high); int64_t below(int64_t n).
template <class Random>
bool draw_rand_change(const RandAugment& policy, Random& random, RandChange& change) {
  const auto op = static_cast<RandOp>(random.below(std::ssize(kRandOpNames)));
  const bool applies = random.uniform(0, 1) < policy.probability;
  const double first = random.uniform(0, 1);
  const double second = random.uniform(0, 1);
  const bool negative = random.below(2) == 1;
  const bool bicubic = random.below(2) == 1;
  // Box and Muller's normal number, of one that is not 0.
  const double normal =
      std::sqrt(-2 * std::log(1 - first)) * std::cos(2 * std::numbers::pi * second);
  const double level =
      policy.uniform ? policy.magnitude * first : policy.magnitude + policy.deviation * normal;
  change = rand_change(op, std::clamp(level, 0.0, policy.most), policy.increasing, negative);
  change.bicubic = bicubic;
  return applies;
}

// Changes the image in place; what comes in from beyond its edges is ImageNet's mean color. Shapes:
// pixels HWC of `size`, RGB. Source: timm's RandAugment on Pillow's images, bit for bit; to no bits
// at all, which newer Pillows refuse, posterizing gives black.
void change(const RandChange& what, const ImageSize& size, std::span<uint8_t> pixels);

}  // namespace lockstep::data
