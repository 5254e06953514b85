#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "data/drawing.h"

namespace lockstep::data::stencil_test {
namespace {

constexpr int kSize = Stencil::kSize;
using Areas = std::array<std::array<int, kSize>, kSize>;  // by row and column

Areas areas_of(const Stencil& stencil) {
  Areas areas{};
  stencil.for_each([&](int32_t row, int32_t column, int32_t open) {
    areas.at(static_cast<size_t>(row)).at(static_cast<size_t>(column)) = open;
  });
  return areas;
}

Areas cut(const std::vector<std::vector<PenPoint>>& contours) {
  Stencil stencil;
  for (const std::vector<PenPoint>& contour : contours) stencil.cut(contour);
  return areas_of(stencil);
}

std::vector<PenPoint> reversed(std::vector<PenPoint> contour) {
  std::ranges::reverse(contour);
  return contour;
}

bool inside(const std::vector<PenPoint>& contour, double x, double y) {
  bool odd = false;
  PenPoint a = contour.back();
  for (const PenPoint b : contour) {
    if ((a.y <= y) != (b.y <= y) && x < a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y)) odd = !odd;
    a = b;
  }
  return odd;
}

// By many points a pixel.
double expected_area(const std::vector<PenPoint>& contour, int row, int column) {
  constexpr int kPoints = 32;
  int hits = 0;
  for (int i = 0; i < kPoints * kPoints; ++i) {
    const double x = column * 256 + (i % kPoints + 0.5) * 256 / kPoints;
    const double y = row * 256 + (i / kPoints + 0.5) * 256 / kPoints;
    hits += inside(contour, x, y) ? 1 : 0;
  }
  return static_cast<double>(hits) * Stencil::kOpen / (kPoints * kPoints);
}

TEST(Stencil, RectanglesAreExact) {
  // x from 2.25 to 4.5 pixels, y from 1.5 to 3 pixels.
  const Areas areas = cut({{{576, 384}, {1152, 384}, {1152, 768}, {576, 768}}});
  EXPECT_EQ(areas[0], (std::array<int, kSize>{}));
  EXPECT_EQ(areas[1], (std::array<int, kSize>{0, 0, 384, 512, 256}));
  EXPECT_EQ(areas[2], (std::array<int, kSize>{0, 0, 768, 1024, 512}));
  EXPECT_EQ(areas[3], (std::array<int, kSize>{}));
}

TEST(Stencil, PolygonsFollowTheirEdges) {
  const std::vector<std::vector<PenPoint>> polygons = {
      {{700, 900}, {5000, 3100}, {2500, 7000}},
      {{4000, 300}, {7900, 4000}, {4000, 7900}, {300, 4100}},
      {{-3000, 2000}, {9500, -400}, {6000, 12000}},                             // beyond all sides
      {{1000, 1000}, {4000, 3000}, {7000, 1000}, {5500, 7000}, {2500, 7000}}};  // not convex
  for (const std::vector<PenPoint>& polygon : polygons) {
    const Areas areas = cut({polygon});
    double difference = 0;
    for (int row = 0; row < kSize; ++row) {
      for (int column = 0; column < kSize; ++column) {
        const int open = areas.at(static_cast<size_t>(row)).at(static_cast<size_t>(column));
        const double want = expected_area(polygon, row, column);
        EXPECT_NEAR(open, want, 130) << row << "," << column;
        difference += open - want;
      }
    }
    EXPECT_NEAR(difference / Stencil::kOpen, 0, 1.6);  // of 12 pixels, 1/8 at a level edge
    EXPECT_EQ(cut({reversed(polygon)}), areas);
  }
}

TEST(Stencil, AContourTheOtherWayRoundLeavesAHole) {
  const std::vector<PenPoint> outer = {{256, 256}, {2560, 256}, {2560, 2560}, {256, 2560}};
  const std::vector<PenPoint> inner = {{768, 768}, {768, 1792}, {1792, 1792}, {1792, 768}};
  for (const Areas& areas : {cut({outer, inner}), cut({reversed(outer), reversed(inner)})}) {
    for (int row = 0; row < kSize; ++row) {
      for (int column = 0; column < kSize; ++column) {
        const int low = std::min(row, column);
        const int high = std::max(row, column);
        const bool open = low >= 1 && high < 10 && (low < 3 || high >= 7);
        EXPECT_EQ(areas.at(static_cast<size_t>(row)).at(static_cast<size_t>(column)),
                  open ? Stencil::kOpen : 0)
            << row << "," << column;
      }
    }
  }
}

TEST(Stencil, NothingIsOpenOutsideTheSheet) {
  for (const auto& [x, y] : {std::pair(-9000, 0), {9000, 0}, {0, -9000}, {0, 9000}}) {
    EXPECT_EQ(cut({{{x, y}, {x + 5000, y}, {x + 5000, y + 5000}, {x, y + 5000}}}), Areas{});
  }
}

}  // namespace
}  // namespace lockstep::data::stencil_test
