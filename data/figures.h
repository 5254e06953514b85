// Figures that the built-in data sets draw: the ten digits as pen strokes through a few points, and
// the outlines of ten shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::data {

// A point of a digit: x to the right in [-24, 24], y downward in [-40, 40].
struct GlyphPoint {
  int8_t x;
  int8_t y;
};

// Strokes are lists of point indices, one after the other, each ended by kPenUp. A smooth curve
// goes through the points of a stroke; it is closed if the first point is also the last. A corner
// is made by ending one stroke and beginning the next there.
inline constexpr int8_t kPenUp = -1;
inline constexpr size_t kMaxGlyphSize = 16;  // points of a glyph, or of a stroke
struct Glyph {
  std::span<const GlyphPoint> points;
  std::span<const int8_t> strokes;
};

// The ways in which people write `digit`. Requires: 0 <= digit <= 9.
std::span<const Glyph> digit_glyphs(int32_t digit);

// A point of a shape: x to the right, y downward, both in [-64, 64].
struct ShapePoint {
  int8_t x;
  int8_t y;
};

// A closed polygon. On the screen holes run counterclockwise, all others clockwise.
using Contour = std::span<const ShapePoint>;
inline constexpr size_t kMaxContourSize = 32;

// Outlines of disc, triangle, square, star, cross, ring, crescent, heart, arrow and hourglass, in
// this order; none is another's mirror image. Requires: 0 <= shape <= 9.
std::span<const Contour> shape_outline(int32_t shape);

}  // namespace lockstep::data
