#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "data/drawing.h"

namespace lockstep::data::pen_test {
namespace {

int ink_at(const Sheet& sheet, int x, int y) {
  return sheet.ink()[static_cast<size_t>(y * Sheet::kSize + x)];
}

// A line's ink in floating point: full up to radius - 1/2 pixel, none from radius + 1/2 on.
double expected_ink(double x, double y, PenPoint a, PenPoint b, double radius) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const double t =
      length2 == 0 ? 0 : std::clamp(((x - a.x) * dx + (y - a.y) * dy) / length2, 0.0, 1.0);
  const double distance = std::hypot(x - a.x - t * dx, y - a.y - t * dy);
  const double outer = radius + 128;
  return std::clamp((outer * outer - distance * distance) / (512 * radius), 0.0, 1.0) * 255;
}

TEST(Pen, LinesFollowTheirFormula) {
  const std::array<std::array<PenPoint, 2>, 6> lines = {{{{{700, 900}, {5000, 3100}}},
                                                         {{{5000, 700}, {1200, 6400}}},
                                                         {{{3000, 400}, {3000, 6000}}},
                                                         {{{400, 3000}, {6000, 3000}}},
                                                         {{{3333, 3444}, {3333, 3444}}},
                                                         {{{-900, 2000}, {1500, 7900}}}}};
  for (const auto& [a, b] : lines) {
    for (const int32_t radius : {128, 200, 450, 1024}) {
      Sheet sheet;
      sheet.line(a, b, radius, 255);
      for (int y = 0; y < Sheet::kSize; ++y) {
        for (int x = 0; x < Sheet::kSize; ++x) {
          const double want = expected_ink(x * 256 + 128, y * 256 + 128, a, b, radius);
          EXPECT_NEAR(ink_at(sheet, x, y), want, 5) << x << "," << y << " radius " << radius;
        }
      }
    }
  }
}

TEST(Pen, TheDarkerLineWins) {
  Sheet sheet;
  sheet.line({3000, 400}, {3000, 6000}, 300, 100);
  EXPECT_EQ(ink_at(sheet, 11, 11), 100);
  sheet.line({400, 3000}, {6000, 3000}, 300, 200);
  EXPECT_EQ(ink_at(sheet, 11, 11), 200);
  sheet.line({3000, 400}, {3000, 6000}, 300, 50);
  EXPECT_EQ(ink_at(sheet, 11, 11), 200);
}

TEST(Pen, CurvesMeetTheirPoints) {
  const std::array<PenPoint, 5> points = {
      {{896, 896}, {5248, 1408}, {4736, 5248}, {1408, 4736}, {896, 896}}};
  Sheet closed;
  closed.curve(points, 256, 255);
  for (const PenPoint& point : points) EXPECT_EQ(ink_at(closed, point.x / 256, point.y / 256), 255);
  // A closed curve is round where it closes, an open one through the same points is not.
  Sheet open;
  open.curve(std::span(points).first(4), 256, 255);
  open.curve(std::span(points).last(2), 256, 255);
  EXPECT_FALSE(std::ranges::equal(open.ink(), closed.ink()));
}

TEST(Pen, ACurveOfTwoPointsIsALine) {
  const std::array<PenPoint, 2> points = {{{700, 900}, {4700, 4900}}};
  Sheet curve;
  curve.curve(points, 256, 255);
  Sheet line;
  line.line(points[0], points[1], 256, 255);
  for (size_t i = 0; i < line.ink().size(); ++i) EXPECT_NEAR(curve.ink()[i], line.ink()[i], 3);
}

}  // namespace
}  // namespace lockstep::data::pen_test
