// One random change to the colors or the geometry of a photo.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/affine.h"
#include "data/codecs/image.h"

namespace lockstep::data {

enum class TrivialOp : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize
};
// torchvision's names, in the order of its table.
inline constexpr std::array<std::string_view, 14> kTrivialOpNames = {"Identity",
                                                                     "ShearX",
                                                                     "ShearY",
                                                                     "TranslateX",
                                                                     "TranslateY",
                                                                     "Rotate",
                                                                     "Brightness",
                                                                     "Color",
                                                                     "Contrast",
                                                                     "Sharpness",
                                                                     "Posterize",
                                                                     "Solarize",
                                                                     "AutoContrast",
                                                                     "Equalize"};

struct TrivialChange {
  TrivialOp op = TrivialOp::kIdentity;
  float magnitude = 0;    // in the op's own unit: degrees, pixels, a factor minus 1
  bool bilinear = false;  // for geometric ops: interpolate, instead of taking the nearest pixel
};

// The change of strength `bin` in 0..30. `negative` reverses it if the op has a direction.
TrivialChange trivial_change(TrivialOp op, int64_t bin, bool negative);

// Random: int64_t below(int64_t n).
template <class Random>
TrivialChange draw_trivial_change(Random& random) {
  const auto op = static_cast<TrivialOp>(random.below(std::ssize(kTrivialOpNames)));
  const int64_t bin = random.below(31);
  return trivial_change(op, bin, random.below(2) == 1);
}

// Changes the image in place; points outside of the original become black. Shapes: pixels HWC of
// `size`, RGB. Source: torchvision's TrivialAugmentWide on Pillow's images, bit for bit; a half
// turn or a quarter turn of a square is Pillow's transpose().
void change(const TrivialChange& what, const ImageSize& size, std::span<uint8_t> pixels);

// Multiplies brightness, color, contrast or sharpness by `factor`, in place.
void enhance(TrivialOp op, float factor, const ImageSize& size, std::span<uint8_t> pixels);

// A counterclockwise rotation about the image's center, as Pillow computes it.
Affine rotation(double degrees, const ImageSize& size);

}  // namespace lockstep::data
