// Drawing in integer arithmetic, with the same result on every machine: random integers, rotations,
// a round pen and polygons.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/philox.h"

namespace lockstep::data {

// Uniform in [-reach, reach].
inline int32_t jitter(PhiloxStream& random, int32_t reach) {
  return static_cast<int32_t>(random.below(static_cast<uint32_t>(2 * reach + 1))) - reach;
}

// Uniform in [low, high].
inline int32_t between(PhiloxStream& random, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random.below(static_cast<uint32_t>(high - low + 1)));
}

// Cosine and sine in 1/kOne.
struct Rotation {
  static constexpr int32_t kOne = 1 << 14;

  // Rotation by an angle whose half has the tangent t / kOne: cos = (1 - t^2) / (1 + t^2), sin = 2t
  // / (1 + t^2) with t in units of kOne. Requires: |t| <= kOne, so at most a quarter turn.
  static constexpr Rotation from_half_tangent(int64_t t) {
    constexpr int64_t kOne2 = int64_t{kOne} * kOne;
    return {.cosine = static_cast<int32_t>((kOne2 - t * t) * kOne / (kOne2 + t * t)),
            .sine = static_cast<int32_t>(2 * t * kOne * kOne / (kOne2 + t * t))};
  }

  int32_t cosine = kOne;
  int32_t sine = 0;
};

// In 1/256 of a pixel; pixel (0, 0) covers [0, 256) x [0, 256).
struct PenPoint {
  int32_t x = 0;
  int32_t y = 0;
};
inline constexpr int32_t kPenUnit = 256;

// A square sheet that starts blank. Thread safety: none.
class Sheet {
 public:
  static constexpr int32_t kSize = 28;

  // Draws a line from `a` to `b` with round ends, whose edge is softened over one pixel; where
  // lines cross, the darker value wins. Parts outside the sheet are cut off. Requires: coordinates
  // within +-2^15, a line no longer than 2^13, radius in [kPenUnit / 2, 4 * kPenUnit], strength <=
  // 255.
  void line(PenPoint a, PenPoint b, int32_t radius, int32_t strength);

  // Draws a smooth curve through `points` as lines (Catmull-Rom; closed if the first point equals
  // the last).
  // Requires: at least two points; otherwise as line().
  void curve(std::span<const PenPoint> points, int32_t radius, int32_t strength);

  std::span<const uint8_t> ink() const { return ink_; }  // row by row, 0 is blank

 private:
  std::array<uint8_t, size_t{kSize} * kSize> ink_{};
};

// Rasterizes polygons: a square stencil, initially closed, from which polygons are cut out. Thread
// safety: none.
class Stencil {
 public:
  static constexpr int32_t kSize = 32;
  static constexpr int32_t kOpen = 1024;  // value of a pixel that is inside entirely

  // Cuts out the inside of a closed contour. A contour inside another one that runs in the opposite
  // direction leaves a hole. Parts outside the stencil are cut off.
  // Requires: coordinates within +-2^15; contours that run in the same direction do not overlap.
  void cut(std::span<const PenPoint> contour);

  // Calls visit(row, column, open) for each pixel that is not closed, open in 1..kOpen.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (int32_t row = first_row_; row < end_row_; ++row) {
      int32_t inside = 0;
      for (int32_t column = 0; column < kSize; ++column) {
        inside += changes_[static_cast<size_t>(row)][static_cast<size_t>(column)];
        if (inside != 0) visit(row, column, inside < 0 ? -inside : inside);
      }
    }
  }

 private:
  void edge(PenPoint from, PenPoint to);

  // Difference of a pixel's open area and that of the pixel to its left, with the sign of the
  // contours' direction.
  std::array<std::array<int16_t, kSize + 1>, kSize> changes_{};
  int32_t first_row_ = kSize;
  int32_t end_row_ = 0;
};

}  // namespace lockstep::data
