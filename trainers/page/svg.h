// Builds an SVG picture; also holds what all charts share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainers/page/chart.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers {

// The area in which a chart draws its values, in the picture's units.
struct PlotArea {
  double left = 0, top = 0, right = 0, bottom = 0;
  Axis x{}, y{};

  double x_of(double value) const { return left + x.place(value) * (right - left); }
  double y_of(double value) const { return bottom - y.place(value) * (bottom - top); }
};

// Formats a value of an axis of this scale.
std::string x_text(double value, AxisScale scale);

enum class Anchor { kStart, kMiddle, kEnd };

class Svg {
 public:
  Svg(double width, double height, std::string_view label);

  void text(double x, double y, Anchor anchor, std::string_view text);
  // `style`: attributes of SVG. `title`: text on hovering, or "".
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void rect(const LaneSpan& span, double top, double height);  // span in the picture's units
  void bar(double x, double y, double width, double height, std::string_view style);
  void raw(std::string_view markup) { text_ += markup; }
  // Ticks and label of the x axis; `lines`: through the plot too.
  void x_axis(const PlotArea& area, const ChartFrame& frame, bool lines);
  void y_axis(const PlotArea& area);

  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

// The figure around a picture; `legend` is HTML.
std::string figure(const ChartFrame& frame, const std::string& legend, const std::string& svg);
// An entry of a legend. `box`: a filled square, not a line.
std::string legend_entry(std::string_view label, int color, bool box, bool hatched = false);

}  // namespace lockstep::trainers
