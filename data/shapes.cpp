#include <algorithm>
#include <array>
#include <cstdlib>

#include "data/drawing.h"
#include "data/drawn_dataset.h"
#include "data/figures.h"

namespace lockstep::data {
namespace {

constexpr int32_t kSide = Stencil::kSize;
constexpr int32_t kChannels = 3;

using Color = std::array<int32_t, kChannels>;
using Pixels = std::span<uint8_t>;

// Smallest channel values. The shape is always lighter than its background: if either could be the
// lighter one, a small network would need several times as many steps before its accuracy rises.
constexpr int32_t kBackground = 0;
constexpr int32_t kClutter = 96;
constexpr int32_t kShape = 112;

// Each channel in [low, low + 127].
Color draw_color(PhiloxStream& random, int32_t low) {
  const uint32_t draw = random.next();
  return {low + static_cast<int32_t>(draw & 127U),
          low + static_cast<int32_t>((draw >> 8) & 127U),
          low + static_cast<int32_t>((draw >> 16) & 127U)};
}

int32_t difference(const Color& a, const Color& b) {
  return std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]);
}

// Draws a few colors and returns the one with the most contrast to both given colors.
Color draw_contrast(PhiloxStream& random, const Color& first, const Color& second) {
  constexpr int kCandidates = 4;
  Color best{};
  int32_t best_difference = -1;
  for (int i = 0; i < kCandidates; ++i) {
    const Color color = draw_color(random, kShape);
    const int32_t least = std::min(difference(color, first), difference(color, second));
    if (least <= best_difference) continue;
    best = color;
    best_difference = least;
  }
  return best;
}

// Draws a rotation by any angle.
Rotation draw_rotation(PhiloxStream& random) {
  const Rotation half_turn = Rotation::from_half_tangent(jitter(random, Rotation::kOne));
  if (random.below(2) == 0) return half_turn;
  return {.cosine = -half_turn.cosine, .sine = -half_turn.sine};
}

// Rotates (x, y) about (0, 0), then translates it by `origin`.
PenPoint place(const Rotation& rotation, PenPoint origin, int32_t x, int32_t y) {
  return {origin.x + (rotation.cosine * x - rotation.sine * y) / Rotation::kOne,
          origin.y + (rotation.sine * x + rotation.cosine * y) / Rotation::kOne};
}

uint8_t* pixel_at(Pixels pixels, int32_t row, int32_t column) {
  return &pixels[static_cast<size_t>(int64_t{row} * kSide + column) * kChannels];
}

void paint(const Stencil& stencil, const Color& color, Pixels pixels) {
  stencil.for_each([&](int32_t row, int32_t column, int32_t open) {
    uint8_t* const pixel = pixel_at(pixels, row, column);
    for (size_t c = 0; c < kChannels; ++c) {
      const int32_t old = pixel[c];
      pixel[c] = static_cast<uint8_t>(old + (color[c] - old) * open / Stencil::kOpen);
    }
  });
}

// Paints a color gradient in a random direction.
void paint_background(PhiloxStream& random, const Color& from, const Color& to, Pixels pixels) {
  const Rotation direction = draw_rotation(random);
  for (int32_t row = 0; row < kSide; ++row) {
    for (int32_t column = 0; column < kSide; ++column) {
      const int32_t x = 2 * column - kSide + 1;
      const int32_t y = 2 * row - kSide + 1;
      const int32_t along =
          (x * direction.cosine + y * direction.sine) / Rotation::kOne;  // within +-44
      const int32_t part = 128 + along * 2;
      uint8_t* const pixel = pixel_at(pixels, row, column);
      for (size_t c = 0; c < kChannels; ++c) {
        pixel[c] = static_cast<uint8_t>(from[c] + (to[c] - from[c]) * part / 256);
      }
    }
  }
}

// Paints a bar of random length, thickness, position and angle.
void paint_bar(PhiloxStream& random, const Color& color, Pixels pixels) {
  constexpr int32_t kExtent = kSide * kPenUnit;
  const PenPoint middle{between(random, 0, kExtent), between(random, 0, kExtent)};
  const Rotation rotation = draw_rotation(random);
  const int32_t length = between(random, 2 * kPenUnit, 7 * kPenUnit);         // half of it
  const int32_t thickness = between(random, kPenUnit / 2, kPenUnit * 5 / 4);  // half of it
  const auto corner = [&](int32_t x, int32_t y) { return place(rotation, middle, x, y); };
  Stencil stencil;
  stencil.cut(std::array{corner(-length, -thickness),
                         corner(length, -thickness),
                         corner(length, thickness),
                         corner(-length, thickness)});
  paint(stencil, color, pixels);
}

void paint_shape(PhiloxStream& random, int32_t shape, const Color& color, Pixels pixels) {
  constexpr int32_t kSmallest = 26;  // 1/256 pixels an outline's unit: a radius of 6.5 pixels,
  constexpr int32_t kLargest = 46;   // of 11.5
  constexpr int32_t kMaxOffset = 5 * kPenUnit;
  constexpr int32_t kCenter = kSide * kPenUnit / 2;
  const int32_t scale = between(random, kSmallest, kLargest);
  const int32_t scale_x = scale - between(random, 0, scale / 5);
  const int32_t scale_y = scale - between(random, 0, scale / 5);
  const Rotation rotation = draw_rotation(random);
  const PenPoint middle{kCenter + jitter(random, kMaxOffset), kCenter + jitter(random, kMaxOffset)};

  Stencil stencil;
  for (const Contour& contour : shape_outline(shape)) {
    std::array<PenPoint, kMaxContourSize> points;
    std::ranges::transform(contour, points.begin(), [&](ShapePoint point) {
      return place(rotation, middle, point.x * scale_x, point.y * scale_y);
    });
    stencil.cut(std::span(points).first(contour.size()));
  }
  paint(stencil, color, pixels);
}

void add_grain(PhiloxStream& random, Pixels pixels) {
  const int32_t grain = between(random, 0, 96);  // of 256: up to +-48
  for (size_t i = 0; i < pixels.size(); i += kChannels) {
    uint32_t draw = random.next();
    for (size_t c = 0; c < kChannels; ++c) {
      const int32_t noise = (static_cast<int32_t>(draw & 255U) - 128) * grain / 256;
      pixels[i + c] = static_cast<uint8_t>(std::clamp(pixels[i + c] + noise, 0, 255));
      draw >>= 8;
    }
  }
}

void draw(PhiloxStream& random, int32_t shape, Pixels pixels) {
  const Color first = draw_color(random, kBackground);
  const Color second = draw_color(random, kBackground);
  paint_background(random, first, second, pixels);
  const uint32_t bars_behind = 1 + random.below(4);
  for (uint32_t i = 0; i < bars_behind; ++i)
    paint_bar(random, draw_color(random, kClutter), pixels);
  paint_shape(random, shape, draw_contrast(random, first, second), pixels);
  if (random.below(2) == 0) paint_bar(random, draw_color(random, kClutter), pixels);
  add_grain(random, pixels);
}

constexpr DrawnDataset::Recipe kRecipe = {.name = "shapes",
                                          .train_images = 20000,
                                          .test_images = 4000,
                                          .shape = {kChannels, kSide, kSide},
                                          .seed = 20240301,
                                          .purpose = RandomPurpose::kShapes,
                                          .draw = draw};

}  // namespace

Shapes::Shapes(Split split) : DrawnDataset(kRecipe, split) {}

DatasetPair open_shapes(Splits splits) {
  DatasetPair pair{.train = {}, .test = std::make_shared<Shapes>(Shapes::Split::kTest)};
  if (splits == Splits::kBoth) pair.train = std::make_shared<Shapes>(Shapes::Split::kTrain);
  return pair;
}

}  // namespace lockstep::data
