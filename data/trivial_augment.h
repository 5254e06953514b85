// TrivialAugment: one random change to the colors or the geometry of a photo.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "data/codecs/image.h"
#include "data/photo_ops.h"

namespace lockstep::data {

// torchvision's names, in the order of its table.
inline constexpr std::array kTrivialOps = {NamedPhotoOp{PhotoOp::kIdentity, "Identity"},
                                           NamedPhotoOp{PhotoOp::kShearX, "ShearX"},
                                           NamedPhotoOp{PhotoOp::kShearY, "ShearY"},
                                           NamedPhotoOp{PhotoOp::kTranslateX, "TranslateX"},
                                           NamedPhotoOp{PhotoOp::kTranslateY, "TranslateY"},
                                           NamedPhotoOp{PhotoOp::kRotate, "Rotate"},
                                           NamedPhotoOp{PhotoOp::kBrightness, "Brightness"},
                                           NamedPhotoOp{PhotoOp::kColor, "Color"},
                                           NamedPhotoOp{PhotoOp::kContrast, "Contrast"},
                                           NamedPhotoOp{PhotoOp::kSharpness, "Sharpness"},
                                           NamedPhotoOp{PhotoOp::kPosterize, "Posterize"},
                                           NamedPhotoOp{PhotoOp::kSolarize, "Solarize"},
                                           NamedPhotoOp{PhotoOp::kAutoContrast, "AutoContrast"},
                                           NamedPhotoOp{PhotoOp::kEqualize, "Equalize"}};

struct TrivialChange {
  PhotoOp op = PhotoOp::kIdentity;
  float magnitude = 0;    // in torchvision's units: degrees, pixels, a factor minus 1
  bool bilinear = false;  // for geometric ops: interpolate, instead of taking the nearest pixel
};

// The change of strength `bin` in 0..30. `negative` reverses it if the op has a direction.
TrivialChange trivial_change(PhotoOp op, int64_t bin, bool negative);

// Random: int64_t below(int64_t n).
template <class Random>
TrivialChange draw_trivial_change(Random& random) {
  const int64_t drawn = random.below(std::ssize(kTrivialOps));
  const int64_t bin = random.below(31);
  const PhotoOp op = kTrivialOps[static_cast<size_t>(drawn)].op;
  return trivial_change(op, bin, random.below(2) == 1);
}

// Changes the image in place; points outside of the original become black. Shapes: pixels HWC of
// `size`, RGB. Source: torchvision's TrivialAugmentWide on Pillow's images, bit for bit; a half
// turn or a quarter turn of a square is Pillow's transpose().
void change(const TrivialChange& what, const ImageSize& size, std::span<uint8_t> pixels);

}  // namespace lockstep::data
