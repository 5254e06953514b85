#include "trainers/page/svg.h"

#include <algorithm>

#include <fmt/core.h>

#include "trainers/page/html.h"

namespace lockstep::trainers {
namespace {

// Diagonal stripes in a series' color, for time that was lost.
constexpr const char* kHatches =
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"var(--c1)\" "
    "fill-opacity=\".22\"/><rect width=\"2.4\" height=\"6\" fill=\"var(--c1)\"/></pattern></defs>";

const char* name_of(Anchor anchor) {
  constexpr const char* kNames[] = {"start", "middle", "end"};
  return kNames[static_cast<size_t>(anchor)];
}

}  // namespace

std::string x_text(double value, AxisScale scale) {
  switch (scale) {
    case AxisScale::kSeconds:
      return seconds_text(value);
    case AxisScale::kBytes:
      return bytes_text(static_cast<int64_t>(value));
    case AxisScale::kNumber:
      break;
  }
  return short_text(value);
}

Svg::Svg(double width, double height, std::string_view label)
    : text_(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}",
                        width,
                        height,
                        escaped(label),
                        kHatches)) {}

void Svg::text(double x, double y, Anchor anchor, std::string_view text) {
  text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>",
                       x,
                       y,
                       name_of(anchor),
                       escaped(text));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  text_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>", x1, y1, x2, y2, style);
}

void Svg::rect(const LaneSpan& span, double top, double height) {
  const std::string fill = span.hatched ? "url(#hatch)" : fmt::format("var(--c{})", span.color);
  const std::string title =
      span.title.empty() ? "" : fmt::format("<title>{}</title>", escaped(span.title));
  const double width = std::max(0.8, span.end - span.begin);
  if (span.hatched) bar(span.begin, top, width, height, "fill=\"var(--card)\"");
  text_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" rx=\"2\" "
      "fill=\"{}\"{}>{}</rect>",
      span.begin,
      top,
      width,
      height,
      fill,
      span.faint ? " fill-opacity=\".25\"" : "",
      title);
}

void Svg::bar(double x, double y, double width, double height, std::string_view style) {
  text_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}/>",
                       x,
                       y,
                       width,
                       height,
                       style);
}

void Svg::x_axis(const PlotArea& area, const ChartFrame& frame, bool lines) {
  for (const double tick : area.x.ticks) {
    const double x = area.x_of(tick);
    if (lines) line(x, area.top, x, area.bottom, "stroke=\"var(--grid)\"");
    text(x, area.bottom + 17, Anchor::kMiddle, x_text(tick, frame.scale));
  }
  line(area.left, area.bottom, area.right, area.bottom, "stroke=\"var(--line)\"");
  text((area.left + area.right) / 2, area.bottom + 34, Anchor::kMiddle, frame.x_label);
}

void Svg::y_axis(const PlotArea& area) {
  for (const double tick : area.y.ticks) {
    const double y = area.y_of(tick);
    line(area.left, y, area.right, y, "stroke=\"var(--grid)\"");
    text(area.left - 8, y + 4, Anchor::kEnd, area.y.tick_text(tick));
  }
}

std::string figure(const ChartFrame& frame, const std::string& legend, const std::string& svg) {
  const std::string unit =
      frame.unit.empty() ? "" : fmt::format("<span class=\"unit\">{}</span>", escaped(frame.unit));
  const std::string entries =
      legend.empty() ? "" : fmt::format("<span class=\"legend\">{}</span>", legend);
  return fmt::format(
      "<figure class=\"card{}\"><figcaption><b>{}</b>{}{}</figcaption>\n{}</figure>\n",
      frame.wide ? " wide" : "",
      escaped(frame.title),
      unit,
      entries,
      svg);
}

std::string legend_entry(std::string_view label, int color, bool box, bool hatched) {
  const std::string paint =
      hatched ? "repeating-linear-gradient(-45deg,var(--c1) 0 2px,transparent 2px 5px)"
              : fmt::format("var(--c{})", color);
  return fmt::format("<span><i{} style=\"background:{}\"></i>{}</span>",
                     box ? " class=\"box\"" : "",
                     paint,
                     escaped(label));
}

}  // namespace lockstep::trainers
