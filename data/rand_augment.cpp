#include "data/rand_augment.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/trivial_augment.h"

namespace lockstep::data {
namespace {

constexpr int64_t kColors = 3;
constexpr uint8_t kFill[kColors] = {124, 116, 104};
constexpr double kLevels = 10;

// Pixels before and behind a line's ends are those at the ends.
int64_t held(int64_t i, int64_t size) {
  return std::clamp<int64_t>(i, 0, size - 1);
}

double between(const double (&v)[2], double d) {
  return v[0] + (v[1] - v[0]) * d;
}

double between(const double (&v)[4], double d) {
  const double p1 = v[1];
  const double p2 = -v[0] + v[2];
  const double p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
  const double p4 = -v[0] + v[1] - v[2] + v[3];
  return p1 + d * (p2 + d * (p3 + d * p4));
}

// One color at a place among pixels, from the kCount * kCount around it. Below the last line Pillow
// repeats what the line before it gave.
template <int kCount>
double sample(const uint8_t* color, const ImageSize& size, double x, double y) {
  const auto left = static_cast<int64_t>(std::floor(x));
  const auto top = static_cast<int64_t>(std::floor(y));
  constexpr int64_t kBefore = kCount / 2 - 1;
  double lines[kCount];
  for (int64_t j = 0; j < kCount; ++j) {
    const int64_t row = top - kBefore + j;
    if (j > 0 && (row < 0 || row >= size.height)) {
      lines[j] = lines[j - 1];
      continue;
    }
    const uint8_t* const line = color + held(row, size.height) * size.width * kColors;
    double values[kCount];
    for (int64_t i = 0; i < kCount; ++i) {
      values[i] = line[held(left - kBefore + i, size.width) * kColors];
    }
    lines[j] = between(values, x - static_cast<double>(left));
  }
  return between(lines, y - static_cast<double>(top));
}

uint8_t byte_of(double value) {
  return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<uint8_t>(value);
}

template <int kCount>
void resample(const Affine& from, const ImageSize& size, std::span<uint8_t> pixels) {
  thread_local std::vector<uint8_t> original;
  original.assign(pixels.begin(), pixels.end());
  uint8_t* out = pixels.data();
  for (int64_t row = 0; row < size.height; ++row) {
    for (int64_t column = 0; column < size.width; ++column) {
      const double x_out = static_cast<double>(column) + 0.5;
      const double y_out = static_cast<double>(row) + 0.5;
      const double x = from.xx * x_out + from.xy * y_out + from.x0;
      const double y = from.yx * x_out + from.yy * y_out + from.y0;
      const bool inside = x >= 0 && x < static_cast<double>(size.width) && y >= 0 &&
                          y < static_cast<double>(size.height);
      for (int64_t c = 0; c < kColors; ++c) {
        *out++ = inside ? byte_of(sample<kCount>(original.data() + c, size, x - 0.5, y - 0.5))
                        : kFill[c];
      }
    }
  }
}

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

// The op of TrivialAugment that says the same.
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
    case RandOp::kInvert:  // above a threshold of 0
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
    default:
      if (what.bicubic) return resample<4>(affine_of(what, size), size, pixels);
      return resample<2>(affine_of(what, size), size, pixels);
  }
}

}  // namespace lockstep::data
