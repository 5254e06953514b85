// Changes to the colors and the geometry of photos, each with Pillow's pixels, bit for bit.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/affine.h"
#include "data/codecs/image.h"

namespace lockstep::data {

enum class PhotoOp : uint8_t {
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
  kSolarizeAdd,
  kInvert,
  kAutoContrast,
  kEqualize
};
struct NamedPhotoOp {
  PhotoOp op;
  std::string_view name;
};

inline bool is_geometric(PhotoOp op) {
  return op >= PhotoOp::kShearX && op <= PhotoOp::kRotate;
}

// Changes colors in place. Argument: of kBrightness to kSharpness the factor, 1 for no change; of
// kPosterize the bits that are kept; of kSolarize the least value that is inverted; of kSolarizeAdd
// the addend; of the others none. Shapes: pixels HWC of `size`, RGB. Requires: op changes colors.
void recolor(PhotoOp op, float argument, const ImageSize& size, std::span<uint8_t> pixels);

// Maps points of the result to the original. Argument: a slope, pixels to the left or up, or
// degrees counterclockwise about the image's center. Requires: is_geometric(op).
Affine warp_of(PhotoOp op, double argument, const ImageSize& size);

// Takes the original's nearest pixel for each pixel, in place; points outside become black. Shapes:
// pixels HWC of `size`, RGB.
void warp_nearest(const Affine& from, const ImageSize& size, std::span<uint8_t> pixels);

}  // namespace lockstep::data
