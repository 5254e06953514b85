#include "data/rand_augment.h"

#include <algorithm>
#include <utility>

#include "data/affine.h"
#include "data/trivial_augment.h"

namespace lockstep::data {
namespace {

constexpr std::array<uint8_t, 3> kFill = {124, 116, 104};
constexpr double kLevels = 10;

Affine affine_of(const RandChange& what, const ImageSize& size) {
  switch (what.op) {
    case RandOp::kRotate:
      return rotation(what.argument, size);
    case RandOp::kShearX:
      return {.xy = what.argument};
    case RandOp::kShearY:
      return {.yx = what.argument};
    case RandOp::kTranslateX:
      return {.x0 = what.argument * static_cast<double>(size.width)};
    default:
      return {.y0 = what.argument * static_cast<double>(size.height)};
  }
}

// The same op of TrivialAugment.
TrivialOp trivial_op(RandOp op) {
  switch (op) {
    case RandOp::kAutoContrast:
      return TrivialOp::kAutoContrast;
    case RandOp::kEqualize:
      return TrivialOp::kEqualize;
    case RandOp::kPosterize:
      return TrivialOp::kPosterize;
    case RandOp::kColor:
      return TrivialOp::kColor;
    case RandOp::kContrast:
      return TrivialOp::kContrast;
    case RandOp::kBrightness:
      return TrivialOp::kBrightness;
    case RandOp::kSharpness:
      return TrivialOp::kSharpness;
    default:
      return TrivialOp::kSolarize;
  }
}

}  // namespace

RandChange rand_change(RandOp op, double level, bool increasing, bool negative) {
  const double part = level / kLevels;
  const double sign = negative ? -1 : 1;
  switch (op) {
    case RandOp::kAutoContrast:
    case RandOp::kEqualize:
    case RandOp::kInvert:
      return {.op = op};
    case RandOp::kRotate:
      return {.op = op, .argument = sign * (part * 30)};
    case RandOp::kPosterize: {
      const double bits = std::trunc(part * 4);
      return {.op = op, .argument = increasing ? 4 - bits : bits};
    }
    case RandOp::kSolarize: {
      const double threshold = std::min(256.0, std::trunc(part * 256));
      return {.op = op, .argument = increasing ? 256 - threshold : threshold};
    }
    case RandOp::kSolarizeAdd:
      return {.op = op, .argument = std::min(128.0, std::trunc(part * 110))};
    case RandOp::kShearX:
    case RandOp::kShearY:
      return {.op = op, .argument = sign * (part * 0.3)};
    case RandOp::kTranslateX:
    case RandOp::kTranslateY:
      return {.op = op, .argument = sign * (part * 0.45)};
    default:
      return {.op = op,
              .argument = increasing ? std::max(0.1, 1 + sign * (part * 0.9)) : part * 1.8 + 0.1};
  }
}

void change(const RandChange& what, const ImageSize& size, std::span<uint8_t> pixels) {
  switch (what.op) {
    case RandOp::kAutoContrast:
    case RandOp::kEqualize:
    case RandOp::kPosterize:
    case RandOp::kSolarize:
    case RandOp::kInvert:  // solarizes with a threshold of 0
      return change(
          TrivialChange{trivial_op(what.op), static_cast<float>(what.argument)}, size, pixels);
    case RandOp::kSolarizeAdd:
      for (uint8_t& value : pixels) {
        if (value < 128) value = static_cast<uint8_t>(std::min(255.0, value + what.argument));
      }
      return;
    case RandOp::kColor:
    case RandOp::kContrast:
    case RandOp::kBrightness:
    case RandOp::kSharpness:
      return enhance(trivial_op(what.op), static_cast<float>(what.argument), size, pixels);
    default: {
      const auto by = what.bicubic ? Interpolation::kBicubic : Interpolation::kBilinear;
      return resample(affine_of(what, size), by, kFill, size, pixels);
    }
  }
}

}  // namespace lockstep::data
