// Areas inside polygons, pixel by pixel, in integer arithmetic: the same on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/pen.h"

namespace lockstep::data {

// A square stencil, closed at first, into which polygons are cut. Thread safety: none.
class Stencil {
 public:
  static constexpr int32_t kSize = 32;
  static constexpr int32_t kOpen = 1024;  // a pixel that lies inside altogether

  // Cuts out the inside of a closed contour. One that runs the other way round inside it, be it
  // clockwise or not, leaves a hole. Parts outside the sheet are cut off.
  // Requires: coordinates within +-2^15; contours that run the same way round do not overlap.
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

  // Open area of a pixel less that of the pixel to its left; signed by the direction of contours.
  std::array<std::array<int16_t, kSize + 1>, kSize> changes_{};
  int32_t first_row_ = kSize;
  int32_t end_row_ = 0;
};

}  // namespace lockstep::data
