#include "data/trivial_augment.h"

#include <cmath>

namespace lockstep::data {
namespace {

constexpr int64_t kBins = 31;

// torch.linspace(start, end, 31)[bin].
float linspace_at(float start, float end, int64_t bin) {
  const float step = (end - start) / static_cast<float>(kBins - 1);
  if (bin < kBins / 2) return start + step * static_cast<float>(bin);
  return end - step * static_cast<float>(kBins - 1 - bin);
}

// warp_of()'s argument.
double warp_argument(const TrivialChange& what) {
  const auto magnitude = static_cast<double>(what.magnitude);
  const bool moves = what.op == PhotoOp::kTranslateX || what.op == PhotoOp::kTranslateY;
  return moves ? -std::trunc(magnitude) : magnitude;
}

}  // namespace

TrivialChange trivial_change(PhotoOp op, int64_t bin, bool negative) {
  const auto signed_line = [&](float end) {
    const float magnitude = linspace_at(0, end, bin);
    return TrivialChange{op, negative ? -magnitude : magnitude};
  };
  switch (op) {
    case PhotoOp::kTranslateX:
    case PhotoOp::kTranslateY:
      return signed_line(32);
    case PhotoOp::kRotate:
      return signed_line(135);
    case PhotoOp::kPosterize:  // rounds halves to even
      return {op, 8 - std::nearbyint(static_cast<float>(bin) / 5)};
    case PhotoOp::kSolarize:
      return {op, linspace_at(255, 0, bin)};
    case PhotoOp::kIdentity:
    case PhotoOp::kAutoContrast:
    case PhotoOp::kEqualize:
      return {op, 0};
    default:
      return signed_line(0.99F);
  }
}

void change(const TrivialChange& what, const ImageSize& size, std::span<uint8_t> pixels) {
  if (what.op == PhotoOp::kIdentity) return;
  if (is_geometric(what.op)) {
    const Affine from = warp_of(what.op, warp_argument(what), size);
    if (what.bilinear) return resample(from, Interpolation::kBilinear, {}, size, pixels);
    return warp_nearest(from, size, pixels);
  }
  const bool has_factor = what.op >= PhotoOp::kBrightness && what.op <= PhotoOp::kSharpness;
  recolor(what.op, has_factor ? 1.0F + what.magnitude : what.magnitude, size, pixels);
}

}  // namespace lockstep::data
