// Charts of a report, drawn as inline SVG inside a <figure>.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainers/page/curve.h"

namespace lockstep::trainers {

// The unit of an x axis.
enum class AxisScale : uint8_t { kNumber, kSeconds, kBytes };

// All text is escaped where it is drawn.
struct ChartFrame {
  std::string title{};
  std::string unit{};     // of y, beside the title
  std::string x_label{};  // below the axis
  bool logarithmic = false;
  bool from_zero = false;
  bool wide = false;                     // over the page's whole width
  AxisScale scale = AxisScale::kNumber;  // of x
};

struct ChartLine {
  std::string label{};  // in the legend; "" leaves it out
  std::span<const CurvePoint> points{};
  int color = 0;       // 0 to 7
  bool marks = false;  // a dot a point
  bool dashed = false;
};

// Lines over one pair of axes, with the range of merged values as a band. "" without points.
std::string line_chart(const ChartFrame& frame, std::span<const ChartLine> lines);

struct HistogramBar {
  double low = 0, high = 0;  // along x
  double count = 0;
};
struct HistogramMark {
  std::string label{};
  double x = 0;
};
// Bars over a linear axis, with vertical marks that the legend names. "" without bars.
std::string histogram(const ChartFrame& frame,
                      std::span<const HistogramBar> bars,
                      std::span<const HistogramMark> marks);

// A rank's bar, cut into parts.
struct StackedRow {
  std::string label{};
  std::vector<double> parts{};
  std::string text{};  // after the bar
};
struct StackedPart {
  std::string label{};
  int color = 0;
  bool hatched = false;
};
// Horizontal bars over one axis, which is `frame.scale`'s. "" without rows.
std::string stacked_rows(const ChartFrame& frame,
                         std::span<const StackedPart> parts,
                         std::span<const StackedRow> rows);

// A span of time in a lane.
struct LaneSpan {
  double begin = 0, end = 0;  // seconds
  int color = 0;
  bool hatched = false;
  bool faint = false;
  std::string title{};  // shown on hovering
};
struct Lane {
  std::string label{};
  std::vector<LaneSpan> spans{};
};
// Lanes over one clock. "" without lanes.
std::string lane_chart(const ChartFrame& frame,
                       std::span<const StackedPart> legend,
                       std::span<const Lane> lanes);

// Ranks over steps: a cell where a rank was the slowest, darker the slower.
struct StripCell {
  double begin = 0, end = 0;  // along x
  int64_t row = 0;
  double strength = 0;  // 0 to 1
  std::string title{};
};
std::string strip_chart(const ChartFrame& frame,
                        std::span<const std::string> rows,
                        std::span<const StripCell> cells);

}  // namespace lockstep::trainers
