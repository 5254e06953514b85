#include "data/stencil.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {
namespace {

constexpr int32_t kLines = 4;  // scan lines a row
constexpr int kLineStepBits = 6;
constexpr int32_t kLineStep = 1 << kLineStepBits;
constexpr int32_t kFirstLine = kLineStep / 2;
constexpr int kSlopeBits = 16;

static_assert(kLines * kLineStep == kPenUnit && kLines * kPenUnit == Stencil::kOpen);

// The first scan line at or below y, counted from the top of the sheet, kept on the sheet.
int32_t line_from(int32_t y) {
  const int32_t line = (y - kFirstLine + kLineStep - 1) >> kLineStepBits;
  return std::clamp(line, 0, Stencil::kSize * kLines);
}

}  // namespace

// All that lies to the right of an edge is inside, or outside again, depending on its direction.
void Stencil::edge(PenPoint from, PenPoint to) {
  if (from.y == to.y) return;
  const int32_t sign = from.y < to.y ? 1 : -1;
  if (sign < 0) std::swap(from, to);
  const int64_t slope = (int64_t{to.x - from.x} << kSlopeBits) / (to.y - from.y);
  const int32_t end = line_from(to.y);
  for (int32_t line = line_from(from.y); line < end; ++line) {
    const int32_t y = line * kLineStep + kFirstLine;
    const auto across = static_cast<int32_t>(((y - from.y) * slope) >> kSlopeBits);
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
