#include "data/drawing.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {
namespace {

constexpr int kUnitBits = 14;      // unit vectors are scaled by 2^14,
constexpr int kInkSlopeBits = 20;  // ink per squared distance by 2^20

int64_t square_root(int64_t value) {  // Requires: value < 2^44
  int64_t root = 0;
  for (int64_t bit = int64_t{1} << 21; bit != 0; bit >>= 1) {
    const int64_t candidate = root | bit;
    if (candidate * candidate <= value) root = candidate;
  }
  return root;
}

// First and one past the last pixel whose center may lie in [low, high].
struct PixelRange {
  PixelRange(int32_t low, int32_t high)
      : begin(std::clamp(low >> 8, 0, Sheet::kSize)),
        end(std::clamp((high >> 8) + 1, 0, Sheet::kSize)) {}

  int32_t begin;
  int32_t end;
};

constexpr int32_t center(int32_t pixel) {
  return pixel * kPenUnit + kPenUnit / 2;
}

constexpr int32_t kLines = 4;  // scan lines per row of pixels
constexpr int kLineStepBits = 6;
constexpr int32_t kLineStep = 1 << kLineStepBits;
constexpr int32_t kFirstLine = kLineStep / 2;
constexpr int kEdgeSlopeBits = 16;

static_assert(kLines * kLineStep == kPenUnit && kLines * kPenUnit == Stencil::kOpen);

// The first scan line at or below y, counted from the top and clamped to the stencil.
int32_t line_from(int32_t y) {
  const int32_t line = (y - kFirstLine + kLineStep - 1) >> kLineStepBits;
  return std::clamp(line, 0, Stencil::kSize * kLines);
}

}  // namespace

void Sheet::line(PenPoint a, PenPoint b, int32_t radius, int32_t strength) {
  const PenPoint d{b.x - a.x, b.y - a.y};
  const int64_t fine_length = square_root((int64_t{d.x} * d.x + int64_t{d.y} * d.y) << 16);
  const auto length = static_cast<int32_t>(fine_length >> 8);
  const auto part = [fine_length](int32_t along_axis) {
    return static_cast<int32_t>((int64_t{along_axis} << (kUnitBits + 8)) / fine_length);
  };
  const PenPoint unit =
      fine_length == 0 ? PenPoint{1 << kUnitBits, 0} : PenPoint{part(d.x), part(d.y)};
  // Ink falls from full to none while the squared distance goes from inner^2 to outer^2.
  const int32_t outer = radius + kPenUnit / 2;
  const int32_t outer2 = outer * outer;
  const int32_t slope = (255 << kInkSlopeBits) / (2 * radius * kPenUnit);

  const PixelRange columns(std::min(a.x, b.x) - outer, std::max(a.x, b.x) + outer);
  const PixelRange rows(std::min(a.y, b.y) - outer, std::max(a.y, b.y) + outer);
  for (int32_t row = rows.begin; row < rows.end; ++row) {
    for (int32_t column = columns.begin; column < columns.end; ++column) {
      const PenPoint v{center(column) - a.x, center(row) - a.y};
      const int32_t along = (v.x * unit.x + v.y * unit.y) >> kUnitBits;
      const int32_t on_line = std::clamp(along, 0, length);
      const int32_t across = (v.x * unit.y - v.y * unit.x) >> kUnitBits;
      const int32_t beyond = along - on_line;
      const int32_t distance2 = across * across + beyond * beyond;
      if (distance2 >= outer2) continue;
      const int32_t cover = std::min(((outer2 - distance2) * slope) >> kInkSlopeBits, 255);
      uint8_t& ink = ink_[static_cast<size_t>(row) * kSize + static_cast<size_t>(column)];
      ink = static_cast<uint8_t>(std::max<int32_t>(ink, cover * strength / 255));
    }
  }
}

void Sheet::curve(std::span<const PenPoint> points, int32_t radius, int32_t strength) {
  constexpr int32_t kPieces = 4;
  const size_t last = points.size() - 1;
  const bool closed = points[0].x == points[last].x && points[0].y == points[last].y;
  for (size_t i = 0; i < last; ++i) {
    const PenPoint p0 = i > 0 ? points[i - 1] : points[closed ? last - 1 : 0];
    const PenPoint p1 = points[i];
    const PenPoint p2 = points[i + 1];
    const PenPoint p3 = i + 2 <= last ? points[i + 2] : points[closed ? 1 : last];
    PenPoint from = p1;
    for (int32_t k = 1; k <= kPieces; ++k) {
      const auto at = [k](int32_t c0, int32_t c1, int32_t c2, int32_t c3) {
        const int32_t scaled = 128 * c1 + 16 * k * (c2 - c0) +
                               4 * k * k * (2 * c0 - 5 * c1 + 4 * c2 - c3) +
                               k * k * k * (3 * c1 - 3 * c2 + c3 - c0);
        return scaled >> 7;
      };
      const PenPoint to{at(p0.x, p1.x, p2.x, p3.x), at(p0.y, p1.y, p2.y, p3.y)};
      line(from, to, radius, strength);
      from = to;
    }
  }
}

// Everything to the right of an edge becomes inside, or outside again, depending on the edge's
// direction.
void Stencil::edge(PenPoint from, PenPoint to) {
  if (from.y == to.y) return;
  const int32_t sign = from.y < to.y ? 1 : -1;
  if (sign < 0) std::swap(from, to);
  const int64_t slope = (int64_t{to.x - from.x} << kEdgeSlopeBits) / (to.y - from.y);
  const int32_t end = line_from(to.y);
  for (int32_t line = line_from(from.y); line < end; ++line) {
    const int32_t y = line * kLineStep + kFirstLine;
    const auto across = static_cast<int32_t>(((y - from.y) * slope) >> kEdgeSlopeBits);
    const int32_t x = std::clamp(from.x + across, 0, kSize * kPenUnit);
    const int32_t part = x % kPenUnit;
    auto& row = changes_[static_cast<size_t>(line / kLines)];
    const auto column = static_cast<size_t>(x / kPenUnit);
    row[column] = static_cast<int16_t>(row[column] + sign * (kPenUnit - part));
    if (part != 0) row[column + 1] = static_cast<int16_t>(row[column + 1] + sign * part);
  }
}

void Stencil::cut(std::span<const PenPoint> contour) {
  PenPoint from = contour.back();
  for (const PenPoint to : contour) {
    edge(from, to);
    from = to;
    first_row_ = std::min(first_row_, std::clamp(to.y / kPenUnit, 0, kSize));
    end_row_ = std::max(end_row_, std::clamp(to.y / kPenUnit + 1, 0, kSize));
  }
}

}  // namespace lockstep::data
