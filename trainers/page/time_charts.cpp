#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "trainers/page/chart.h"
#include "trainers/page/svg.h"

namespace lockstep::trainers {
namespace {

constexpr double kRow = 26;     // height of a row and its gap
constexpr double kThick = 16;   // of its bar
constexpr double kLabels = 84;  // room for the rows' labels
constexpr double kBelow = 40;   // ticks and the axis's label

double width_of(const ChartFrame& frame) {
  return frame.wide ? 1060 : 520;
}

double top_of(size_t row) {
  return 6 + kRow * static_cast<double>(row);
}

// Bytes have ticks at round numbers of KiB, MiB or GiB.
double unit_of(AxisScale scale, double last) {
  double unit = 1;
  while (scale == AxisScale::kBytes && last >= 1024 * unit) unit *= 1024;
  return unit;
}

// Rows over an axis from 0 on.
PlotArea rows_plot(const ChartFrame& frame, size_t rows, double last, double right_margin) {
  PlotArea area{.left = kLabels,
                .top = 2,
                .right = width_of(frame) - right_margin,
                .bottom = top_of(rows) + 2};
  const double unit = unit_of(frame.scale, last);
  area.x = linear_axis(0, last > 0 ? last / unit : 1, frame.wide ? 10 : 4);
  for (double& tick : area.x.ticks) tick *= unit;
  area.x.high *= unit;
  return area;
}

std::string legend_of(std::span<const StackedPart> parts) {
  std::string legend;
  for (const StackedPart& part : parts) {
    legend += legend_entry(part.label, part.color, true, part.hatched);
  }
  return legend;
}

}  // namespace

std::string histogram(const ChartFrame& frame,
                      std::span<const HistogramBar> bars,
                      std::span<const HistogramMark> marks) {
  if (bars.empty()) return "";
  const double highest = std::ranges::max_element(bars, {}, &HistogramBar::count)->count;
  PlotArea area{.left = 52, .top = 10, .right = width_of(frame) - 14, .bottom = 214};
  area.x = linear_axis(bars.front().low, bars.back().high, 6);
  area.y = linear_axis(0, highest, 4);
  Svg svg(width_of(frame), 252, frame.title);
  svg.y_axis(area);
  svg.x_axis(area, frame, false);
  for (const HistogramBar& bar : bars) {
    if (bar.count <= 0) continue;
    const double x = area.x_of(bar.low), y = area.y_of(bar.count);
    const double width = std::max(0.8, area.x_of(bar.high) - x - 0.8);
    svg.bar(x, y, width, area.bottom - y, "fill=\"var(--c0)\" fill-opacity=\".85\"");
  }
  std::string legend;
  for (const HistogramMark& mark : marks) {
    legend += legend_entry(mark.label, 1, false);
    const double x = area.x_of(mark.x);
    if (x > area.right) continue;
    svg.line(x, area.top, x, area.bottom, "stroke=\"var(--c1)\" stroke-dasharray=\"3 3\"");
  }
  return figure(frame, legend, svg.finish());
}

std::string stacked_rows(const ChartFrame& frame,
                         std::span<const StackedPart> parts,
                         std::span<const StackedRow> rows) {
  if (rows.empty()) return "";
  double longest = 0;
  for (const StackedRow& row : rows) {
    longest = std::max(longest, std::accumulate(row.parts.begin(), row.parts.end(), 0.0));
  }
  const bool has_text =
      std::ranges::any_of(rows, [](const StackedRow& r) { return !r.text.empty(); });
  const PlotArea area = rows_plot(frame, rows.size(), longest, has_text ? 110 : 14);
  Svg svg(width_of(frame), area.bottom + kBelow, frame.title);
  svg.x_axis(area, frame, true);
  for (size_t i = 0; i < rows.size(); ++i) {
    svg.text(area.left - 10, top_of(i) + 12.5, Anchor::kEnd, rows[i].label);
    double begin = 0;
    for (size_t part = 0; part < rows[i].parts.size(); ++part) {
      const double seconds = rows[i].parts[part];
      const double end = begin + seconds;
      if (seconds > 0) {
        svg.rect({.begin = area.x_of(begin),
                  .end = area.x_of(end),
                  .color = parts[part].color,
                  .hatched = parts[part].hatched,
                  .title = fmt::format("{}: {}", parts[part].label, x_text(seconds, frame.scale))},
                 top_of(i),
                 kThick);
      }
      begin = end;
    }
    svg.text(area.x_of(begin) + 8, top_of(i) + 12.5, Anchor::kStart, rows[i].text);
  }
  return figure(frame, legend_of(parts), svg.finish());
}

std::string lane_chart(const ChartFrame& frame,
                       std::span<const StackedPart> legend,
                       std::span<const Lane> lanes) {
  if (lanes.empty()) return "";
  double last = 0;
  for (const Lane& lane : lanes) {
    for (const LaneSpan& span : lane.spans) last = std::max(last, span.end);
  }
  const PlotArea area = rows_plot(frame, lanes.size(), last, 14);
  Svg svg(width_of(frame), area.bottom + kBelow, frame.title);
  svg.x_axis(area, frame, true);
  for (size_t i = 0; i < lanes.size(); ++i) {
    svg.text(area.left - 10, top_of(i) + 12.5, Anchor::kEnd, lanes[i].label);
    for (LaneSpan span : lanes[i].spans) {
      span.begin = area.x_of(span.begin);
      span.end = area.x_of(span.end);
      svg.rect(span, top_of(i), kThick);
    }
  }
  return figure(frame, legend_of(legend), svg.finish());
}

std::string strip_chart(const ChartFrame& frame,
                        std::span<const std::string> rows,
                        std::span<const StripCell> cells) {
  if (cells.empty()) return "";
  PlotArea area{
      .left = kLabels, .top = 2, .right = width_of(frame) - 14, .bottom = top_of(rows.size()) + 2};
  area.x = linear_axis(cells.front().begin, cells.back().end, frame.wide ? 10 : 5);
  area.x.low = cells.front().begin;
  area.x.high = std::max(cells.back().end, area.x.low + 1);
  std::erase_if(area.x.ticks, [&](double t) { return t < area.x.low || t > area.x.high; });
  Svg svg(width_of(frame), area.bottom + kBelow, frame.title);
  svg.x_axis(area, frame, false);
  for (size_t i = 0; i < rows.size(); ++i) {
    svg.text(area.left - 10, top_of(i) + 12.5, Anchor::kEnd, rows[i]);
    svg.bar(area.left, top_of(i), area.right - area.left, kThick, "fill=\"var(--soft)\" rx=\"2\"");
  }
  for (const StripCell& cell : cells) {
    const double x = area.x_of(cell.begin);
    svg.raw(fmt::format("<g fill-opacity=\"{:.2f}\">",
                        0.15 + 0.85 * std::clamp(cell.strength, 0.0, 1.0)));
    svg.rect({.begin = x, .end = area.x_of(cell.end), .color = 1, .title = cell.title},
             top_of(static_cast<size_t>(cell.row)),
             kThick);
    svg.raw("</g>");
  }
  return figure(frame, "", svg.finish());
}

}  // namespace lockstep::trainers
