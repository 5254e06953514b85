// Figures to draw: the ten digits as pen strokes through a few points, the outlines of ten shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::data {

// A place in a digit: x to the right in [-24, 24], y downwards in [-40, 40].
struct GlyphPoint {
  int8_t x;
  int8_t y;
};

// Strokes are lists of point numbers, one after the other, each ended by kPenUp; a smooth curve
// goes through the points of a stroke, closed where the first is also the last. A corner is where
// one stroke ends and the next begins.
inline constexpr int8_t kPenUp = -1;
inline constexpr size_t kMaxGlyphSize = 16;  // points of a glyph, or of a stroke
struct Glyph {
  std::span<const GlyphPoint> points;
  std::span<const int8_t> strokes;
};

// The ways in which people write `digit`. Requires: 0 <= digit <= 9.
std::span<const Glyph> digit_glyphs(int32_t digit);

// A place in a shape: x to the right, y downwards, both in [-64, 64].
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
