// RandAugment: several random changes to the colors and the geometry of a photo, one after another.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include "core/augmentation.h"
#include "data/codecs/image.h"
#include "data/photo_ops.h"

namespace lockstep::data {

// timm's names, in the order of its table. With RandAugment::increasing timm's names of color
// changes are "PosterizeIncreasing" and so on.
inline constexpr std::array kRandOps = {NamedPhotoOp{PhotoOp::kAutoContrast, "AutoContrast"},
                                        NamedPhotoOp{PhotoOp::kEqualize, "Equalize"},
                                        NamedPhotoOp{PhotoOp::kInvert, "Invert"},
                                        NamedPhotoOp{PhotoOp::kRotate, "Rotate"},
                                        NamedPhotoOp{PhotoOp::kPosterize, "Posterize"},
                                        NamedPhotoOp{PhotoOp::kSolarize, "Solarize"},
                                        NamedPhotoOp{PhotoOp::kSolarizeAdd, "SolarizeAdd"},
                                        NamedPhotoOp{PhotoOp::kColor, "Color"},
                                        NamedPhotoOp{PhotoOp::kContrast, "Contrast"},
                                        NamedPhotoOp{PhotoOp::kBrightness, "Brightness"},
                                        NamedPhotoOp{PhotoOp::kSharpness, "Sharpness"},
                                        NamedPhotoOp{PhotoOp::kShearX, "ShearX"},
                                        NamedPhotoOp{PhotoOp::kShearY, "ShearY"},
                                        NamedPhotoOp{PhotoOp::kTranslateX, "TranslateXRel"},
                                        NamedPhotoOp{PhotoOp::kTranslateY, "TranslateYRel"}};

struct RandChange {
  PhotoOp op = PhotoOp::kIdentity;
  double argument = 0;   // in the op's own unit: degrees, a part of the image, a factor, a value
  bool bicubic = false;  // geometry: between pixels, instead of bilinear
};

// The change of strength `level`, out of 10. `negative` reverses it if the op has a direction.
RandChange rand_change(PhotoOp op, double level, bool increasing, bool negative);

// Draws one layer of the policy. Returns false if the layer changes nothing. Random: float
// uniform(float low, float high); int64_t below(int64_t n).
template <class Random>
bool draw_rand_change(const RandAugment& policy, Random& random, RandChange& change) {
  const int64_t drawn = random.below(std::ssize(kRandOps));
  const bool applies = random.uniform(0, 1) < policy.probability;
  const double first = random.uniform(0, 1);
  const double second = random.uniform(0, 1);
  const bool negative = random.below(2) == 1;
  const bool bicubic = random.below(2) == 1;
  // Box-Muller; 1 - first is never 0.
  const double normal =
      std::sqrt(-2 * std::log(1 - first)) * std::cos(2 * std::numbers::pi * second);
  const double level =
      policy.uniform ? policy.magnitude * first : policy.magnitude + policy.deviation * normal;
  const PhotoOp op = kRandOps[static_cast<size_t>(drawn)].op;
  change = rand_change(op, std::clamp(level, 0.0, policy.most), policy.increasing, negative);
  change.bicubic = bicubic;
  return applies;
}

// Changes the image in place; points outside of the original become ImageNet's mean color. Shapes:
// pixels HWC of `size`, RGB. Source: timm's RandAugment on Pillow's images, bit for bit.
// Posterizing to 0 bits, which newer versions of Pillow reject, gives black.
void change(const RandChange& what, const ImageSize& size, std::span<uint8_t> pixels);

}  // namespace lockstep::data
