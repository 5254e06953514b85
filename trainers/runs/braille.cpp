#include "trainers/runs/braille.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include <fmt/core.h>

#include "trainers/report/number_text.h"

namespace lockstep::trainers {
namespace {

constexpr size_t kLabelWidth = 7;
constexpr int kAxisWidth = kLabelWidth + 2;  // label, blank, line

struct Dot {
  int x = 0, y = 0;  // from the top left
};

class DotCanvas {
 public:
  DotCanvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        cells_(static_cast<size_t>(columns) * static_cast<size_t>(rows)) {}

  int width() const { return 2 * columns_; }
  int height() const { return 4 * rows_; }

  void line(Dot from, Dot to, int color) {
    const int steps = std::max({std::abs(to.x - from.x), std::abs(to.y - from.y), 1});
    for (int i = 0; i <= steps; ++i) {
      const auto between = [&](int a, int b) {
        return a + static_cast<int>(std::lround(static_cast<double>(b - a) * i / steps));
      };
      set({between(from.x, to.x), between(from.y, to.y)}, color);
    }
  }

  std::string row(int row, bool colors) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[index(column, row)];
      const bool colored = colors && cell.dots != 0 && cell.color != 0;
      if (colored) text += fmt::format("\x1b[{}m", cell.color);
      text += character(cell.dots);
      if (colored) text += "\x1b[0m";
    }
    return text;
  }

 private:
  struct Cell {
    uint8_t dots = 0;
    int color = 0;
  };

  size_t index(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }

  void set(Dot dot, int color) {
    // Unicode numbers the upper six dots column by column, and then the lowest two.
    constexpr uint8_t kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = cells_[index(dot.x / 2, dot.y / 4)];
    cell.dots |= kDots[dot.y % 4][dot.x % 2];
    cell.color = color;
  }

  // U+2800 and the dots, in UTF-8.
  static std::string character(uint8_t dots) {
    if (dots == 0) return " ";
    return {'\xe2', static_cast<char>(0xA0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3F))};
  }

  int columns_, rows_;
  std::vector<Cell> cells_;
};

Axis axis_of(std::span<const BrailleCurve> curves, bool logarithmic) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const BrailleCurve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      low = std::min(low, point.mean);
      high = std::max(high, point.mean);
    }
  }
  return logarithmic ? logarithmic_axis(low, high) : linear_axis(low, high, 4);
}

std::string label_of(const Axis& axis, double value) {
  const std::string text = axis.tick_text(value);
  return text.size() <= kLabelWidth ? text : fmt::format("{:.0e}", value);
}

std::string axis_text(const Axis& axis, int row, int rows) {
  const std::string label = row == 0          ? label_of(axis, axis.high)
                            : row == rows - 1 ? label_of(axis, axis.low)
                                              : "";
  return fmt::format("{:>{}} │", label, kLabelWidth);
}

}  // namespace

std::vector<std::string> braille_plot(std::span<const BrailleCurve> curves,
                                      const BrailleArea& area,
                                      bool colors) {
  const bool is_empty =
      std::ranges::all_of(curves, [](const BrailleCurve& curve) { return curve.points.empty(); });
  if (is_empty || area.columns <= kAxisWidth || area.rows < 2) return {};
  const Axis y = axis_of(curves, area.logarithmic);
  DotCanvas canvas(area.columns - kAxisWidth, area.rows);
  const auto dot_of = [&](const CurvePoint& point) {
    const auto place = [](double share, int dots) {
      return std::clamp(static_cast<int>(std::lround(share * (dots - 1))), 0, dots - 1);
    };
    const double x = area.last_x > 0 ? point.x / area.last_x : 0;
    return Dot{place(x, canvas.width()), place(1 - y.place(point.mean), canvas.height())};
  };
  for (const BrailleCurve& curve : curves) {
    for (size_t i = 0; i < curve.points.size(); ++i) {
      canvas.line(dot_of(curve.points[i == 0 ? 0 : i - 1]), dot_of(curve.points[i]), curve.color);
    }
  }
  std::vector<std::string> rows;
  rows.reserve(static_cast<size_t>(area.rows));
  for (int row = 0; row < area.rows; ++row) {
    rows.push_back(axis_text(y, row, area.rows) + canvas.row(row, colors));
  }
  return rows;
}

}  // namespace lockstep::trainers
