#include "data/affine.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::data {
namespace {

constexpr int64_t kBytesAPixel = 3;

// Pixels before and after a line's ends are those at the ends.
int64_t held_within(int64_t i, int64_t size) {
  return std::clamp<int64_t>(i, 0, size - 1);
}

double on_curve(const double (&v)[2], double d) {
  return v[0] + (v[1] - v[0]) * d;
}

double on_curve(const double (&v)[4], double d) {
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
    const uint8_t* const line = color + held_within(row, size.height) * size.width * kBytesAPixel;
    double values[kCount];
    for (int64_t i = 0; i < kCount; ++i) {
      values[i] = line[held_within(left - kBefore + i, size.width) * kBytesAPixel];
    }
    lines[j] = on_curve(values, x - static_cast<double>(left));
  }
  return on_curve(lines, y - static_cast<double>(top));
}

uint8_t byte_of(double value) {
  return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<uint8_t>(value);
}

template <int kCount>
void resample_by(const Affine& from,
                 const std::array<uint8_t, 3>& fill,
                 const ImageSize& size,
                 std::span<uint8_t> pixels) {
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
      for (int64_t c = 0; c < kBytesAPixel; ++c) {
        *out++ = inside ? byte_of(sample<kCount>(original.data() + c, size, x - 0.5, y - 0.5))
                        : fill[static_cast<size_t>(c)];
      }
    }
  }
}

}  // namespace

void resample(const Affine& from,
              Interpolation by,
              const std::array<uint8_t, 3>& fill,
              const ImageSize& size,
              std::span<uint8_t> pixels) {
  if (by == Interpolation::kBicubic) return resample_by<4>(from, fill, size, pixels);
  return resample_by<2>(from, fill, size, pixels);
}

}  // namespace lockstep::data
