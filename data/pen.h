// Drawing with a round pen in integer arithmetic: the same pixels on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::data {

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

  // A line of ink from `a` to `b`, round at both ends, its edge softened over one pixel; where
  // lines meet the darker wins. Parts outside the sheet are cut off. Requires: coordinates within
  // +-2^15, a line no longer than 2^13, radius in [kPenUnit / 2, 4 * kPenUnit], strength <= 255.
  void line(PenPoint a, PenPoint b, int32_t radius, int32_t strength);

  // A smooth curve through `points` (Catmull-Rom, closed when the first equals the last), as lines.
  // Requires: at least two points; otherwise as line().
  void curve(std::span<const PenPoint> points, int32_t radius, int32_t strength);

  std::span<const uint8_t> ink() const { return ink_; }  // row by row, 0 is blank

 private:
  std::array<uint8_t, size_t{kSize} * kSize> ink_{};
};

}  // namespace lockstep::data
