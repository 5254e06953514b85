#include "data/affine.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::data {
namespace {

constexpr int64_t kBytesPerPixel = 3;

// Clamps an index to [0, size): pixels beyond the ends of a line equal those at the ends.
int64_t clamp_index(int64_t i, int64_t size) {
  return std::clamp<int64_t>(i, 0, size - 1);
}

double interpolate(const double (&v)[2], double d) {
  return v[0] + (v[1] - v[0]) * d;
}

double interpolate(const double (&v)[4], double d) {
  const double p1 = v[1];
  const double p2 = -v[0] + v[2];
  const double p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
  const double p4 = -v[0] + v[1] - v[2] + v[3];
  return p1 + d * (p2 + d * (p3 + d * p4));
}

// Interpolates one color at (x, y) from the kCount * kCount pixels around it. For a line outside of
// the image Pillow repeats the value of the line before.
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
    const uint8_t* const line = color + clamp_index(row, size.height) * size.width * kBytesPerPixel;
    double values[kCount];
    for (int64_t i = 0; i < kCount; ++i) {
      values[i] = line[clamp_index(left - kBefore + i, size.width) * kBytesPerPixel];
    }
    lines[j] = interpolate(values, x - static_cast<double>(left));
  }
  return interpolate(lines, y - static_cast<double>(top));
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
      for (int64_t c = 0; c < kBytesPerPixel; ++c) {
        *out++ = inside ? clip_to_byte(sample<kCount>(original.data() + c, size, x - 0.5, y - 0.5))
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
