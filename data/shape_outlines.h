// The outlines of the ten shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::data {

// x to the right, y downwards, both in [-64, 64].
struct ShapePoint {
  int8_t x;
  int8_t y;
};

// A closed polygon; holes run anticlockwise as seen, all others clockwise.
using Contour = std::span<const ShapePoint>;
inline constexpr size_t kMaxContourSize = 32;

// Outlines of disc, triangle, square, star, cross, ring, crescent, heart, arrow and hourglass, in
// this order; none is another's mirror image. Requires: 0 <= shape <= 9.
std::span<const Contour> shape_outline(int32_t shape);

}  // namespace lockstep::data
