#include <algorithm>
#include <limits>
#include <string>

#include <fmt/core.h>

#include "trainers/page/chart.h"
#include "trainers/page/svg.h"

namespace lockstep::trainers {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

PlotArea plot_of(const ChartFrame& frame, std::span<const ChartLine> lines, double width) {
  Range x, y;
  for (const ChartLine& line : lines) {
    for (const CurvePoint& point : line.points) {
      x.add(point.x);
      y.add(point.low);
      y.add(point.high);
    }
  }
  if (frame.from_zero) y.add(0);
  x.add(0);
  PlotArea area{.left = 52, .top = 10, .right = width - 14, .bottom = 214};
  const bool is_wide = y.low > 0 && y.high > 4 * y.low;
  area.y = frame.logarithmic && is_wide ? logarithmic_axis(y.low, y.high)
                                        : linear_axis(y.low, y.high, 5);
  area.x = linear_axis(x.low, x.high, frame.wide ? 12 : 6);
  if (x.high > x.low) {  // the data's own range: a curve fills its plot
    area.x.low = x.low;
    area.x.high = x.high;
    std::erase_if(area.x.ticks, [&](double tick) { return tick < x.low || tick > x.high; });
  }
  return area;
}

void draw_band(const PlotArea& area, const ChartLine& line, Svg& svg) {
  const auto is_merged = [](const CurvePoint& point) { return point.count > 1; };
  if (std::ranges::none_of(line.points, is_merged)) return;
  std::string path;
  for (const CurvePoint& point : line.points) {
    path += fmt::format("{:.1f},{:.1f} ", area.x_of(point.x), area.y_of(point.high));
  }
  for (auto point = line.points.rbegin(); point != line.points.rend(); ++point) {
    path += fmt::format("{:.1f},{:.1f} ", area.x_of(point->x), area.y_of(point->low));
  }
  svg.raw(fmt::format(
      "<polygon points=\"{}\" fill=\"var(--c{})\" fill-opacity=\".16\"/>", path, line.color));
}

void draw_line(const PlotArea& area, const ChartLine& line, Svg& svg) {
  std::string path;
  for (const CurvePoint& point : line.points) {
    path += fmt::format("{:.1f},{:.1f} ", area.x_of(point.x), area.y_of(point.mean));
  }
  svg.raw(
      fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"var(--c{})\" stroke-width=\"{}\" "
                  "stroke-linejoin=\"round\"{}/>",
                  path,
                  line.color,
                  line.marks ? 2 : 1.5,
                  line.dashed ? " stroke-dasharray=\"5 4\"" : ""));
  constexpr size_t kMaxMarks = 60;
  if ((!line.marks || line.points.size() > kMaxMarks) && line.points.size() > 1) return;
  for (const CurvePoint& point : line.points) {
    svg.raw(
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.2\" fill=\"var(--c{})\" "
                    "stroke=\"var(--card)\" stroke-width=\"1.5\"><title>{} {}: {}</title></circle>",
                    area.x_of(point.x),
                    area.y_of(point.mean),
                    line.color,
                    "step",
                    count_text(static_cast<int64_t>(point.x)),
                    value_text(point.mean)));
  }
}

}  // namespace

std::string line_chart(const ChartFrame& frame, std::span<const ChartLine> lines) {
  const auto has_points = [](const ChartLine& line) { return !line.points.empty(); };
  if (std::ranges::none_of(lines, has_points)) return "";
  const double width = frame.wide ? 1060 : 520;
  const PlotArea area = plot_of(frame, lines, width);
  Svg svg(width, 252, frame.title);
  svg.y_axis(area);
  svg.x_axis(area, frame, false);
  std::string legend;
  for (const ChartLine& line : lines) {
    if (line.points.empty()) continue;
    draw_band(area, line, svg);
    draw_line(area, line, svg);
    if (!line.label.empty()) legend += legend_entry(line.label, line.color, false);
  }
  return figure(frame, legend, svg.finish());
}

}  // namespace lockstep::trainers
