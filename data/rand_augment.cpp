#include "data/rand_augment.h"

namespace lockstep::data {
namespace {

constexpr std::array<uint8_t, 3> kFill = {124, 116, 104};
constexpr double kLevels = 10;

// warp_of()'s argument.
double warp_argument(const RandChange& what, const ImageSize& size) {
  switch (what.op) {
    case PhotoOp::kTranslateX:
      return what.argument * static_cast<double>(size.width);
    case PhotoOp::kTranslateY:
      return what.argument * static_cast<double>(size.height);
    default:
      return what.argument;
  }
}

}  // namespace

RandChange rand_change(PhotoOp op, double level, bool increasing, bool negative) {
  const double part = level / kLevels;
  const double sign = negative ? -1 : 1;
  switch (op) {
    case PhotoOp::kAutoContrast:
    case PhotoOp::kEqualize:
    case PhotoOp::kInvert:
      return {.op = op};
    case PhotoOp::kRotate:
      return {.op = op, .argument = sign * (part * 30)};
    case PhotoOp::kPosterize: {
      const double bits = std::trunc(part * 4);
      return {.op = op, .argument = increasing ? 4 - bits : bits};
    }
    case PhotoOp::kSolarize: {
      const double threshold = std::min(256.0, std::trunc(part * 256));
      return {.op = op, .argument = increasing ? 256 - threshold : threshold};
    }
    case PhotoOp::kSolarizeAdd:
      return {.op = op, .argument = std::min(128.0, std::trunc(part * 110))};
    case PhotoOp::kShearX:
    case PhotoOp::kShearY:
      return {.op = op, .argument = sign * (part * 0.3)};
    case PhotoOp::kTranslateX:
    case PhotoOp::kTranslateY:
      return {.op = op, .argument = sign * (part * 0.45)};
    default:
      return {.op = op,
              .argument = increasing ? std::max(0.1, 1 + sign * (part * 0.9)) : part * 1.8 + 0.1};
  }
}

void change(const RandChange& what, const ImageSize& size, std::span<uint8_t> pixels) {
  if (!is_geometric(what.op)) {
    return recolor(what.op, static_cast<float>(what.argument), size, pixels);
  }
  const Affine from = warp_of(what.op, warp_argument(what, size), size);
  const auto by = what.bicubic ? Interpolation::kBicubic : Interpolation::kBilinear;
  resample(from, by, kFill, size, pixels);
}

}  // namespace lockstep::data
