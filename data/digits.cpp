#include <algorithm>
#include <array>

#include "data/drawing.h"
#include "data/drawn_dataset.h"
#include "data/figures.h"

namespace lockstep::data {
namespace {

// Maps glyph units to the sheet: scale, shear and rotation in 1/2^14, then a shift.
class Placement {
 public:
  explicit Placement(PhiloxStream& random) {
    const int32_t scale_x = kUnitScale + jitter(random, kUnitScale * 5 / 16);
    const int32_t scale_y = kUnitScale + jitter(random, kUnitScale * 3 / 16);
    const int32_t shear = jitter(random, kOne * 5 / 16);
    const auto [cosine, sine] = Rotation::from_half_tangent(jitter(random, kOne * 11 / 64));
    const int32_t sheared = (shear * scale_y) / kOne;
    xx_ = cosine * scale_x;
    xy_ = cosine * sheared - sine * scale_y;
    yx_ = sine * scale_x;
    yy_ = sine * sheared + cosine * scale_y;
    shift_ = {kCenter + jitter(random, kMaxShift), kCenter + jitter(random, kMaxShift)};
  }

  // Requires: coordinates within +-64.
  PenPoint operator()(int32_t x, int32_t y) const {
    return {(xx_ * x + xy_ * y) / kOne + shift_.x, (yx_ * x + yy_ * y) / kOne + shift_.y};
  }

 private:
  static constexpr int32_t kOne = Rotation::kOne;
  static constexpr int32_t kUnitScale = 60;  // 1/256 pixels per glyph unit: 80 units are 19 pixels
  static constexpr int32_t kCenter = Sheet::kSize * kPenUnit / 2;
  static constexpr int32_t kMaxShift = 5 * kPenUnit / 2;

  int32_t xx_ = 0;
  int32_t xy_ = 0;
  int32_t yx_ = 0;
  int32_t yy_ = 0;
  PenPoint shift_;
};

void draw_digit(PhiloxStream& random, int32_t digit, Sheet& sheet) {
  constexpr int32_t kHandJitter = 6;  // glyph units
  constexpr int32_t kThinnest = kPenUnit * 5 / 8;
  constexpr int32_t kThickest = kPenUnit * 7 / 4;

  const std::span<const Glyph> styles = digit_glyphs(digit);
  const Glyph& glyph = styles[random.below(static_cast<uint32_t>(styles.size()))];
  const Placement place(random);
  const int32_t radius = between(random, kThinnest, kThickest);
  const int32_t strength = 255 - static_cast<int32_t>(random.below(112));

  std::array<PenPoint, kMaxGlyphSize> points;
  for (size_t i = 0; i < glyph.points.size(); ++i) {
    const int32_t x = glyph.points[i].x + jitter(random, kHandJitter);
    const int32_t y = glyph.points[i].y + jitter(random, kHandJitter);
    points[i] = place(x, y);
  }
  std::array<PenPoint, kMaxGlyphSize> stroke;
  size_t length = 0;
  for (const int8_t step : glyph.strokes) {
    if (step != kPenUp) {
      stroke[length++] = points[static_cast<uint8_t>(step)];
      continue;
    }
    sheet.curve(std::span(stroke).first(length), radius, strength);
    length = 0;
  }
}

// Stray lines, fainter than the digit.
void draw_stray_lines(PhiloxStream& random, Sheet& sheet) {
  constexpr int32_t kReach = 5 * kPenUnit;
  constexpr auto kExtent = static_cast<uint32_t>(Sheet::kSize * kPenUnit);
  const uint32_t lines = random.below(4);
  for (uint32_t i = 0; i < lines; ++i) {
    const PenPoint from{static_cast<int32_t>(random.below(kExtent)),
                        static_cast<int32_t>(random.below(kExtent))};
    const PenPoint to{from.x + jitter(random, kReach), from.y + jitter(random, kReach)};
    sheet.line(from, to, kPenUnit * 3 / 4, 96 + static_cast<int32_t>(random.below(96)));
  }
}

// Adds noise around 0 to each pixel: the sum of four random bytes, which is nearly normal.
void add_noise(PhiloxStream& random, const Sheet& sheet, std::span<uint8_t> pixels) {
  const auto grain = static_cast<int32_t>(random.below(73));  // of 256; 72 makes sigma 42
  for (size_t i = 0; i < pixels.size(); ++i) {
    const uint32_t draw = random.next();
    const auto sum = static_cast<int32_t>((draw & 255U) + ((draw >> 8) & 255U) +
                                          ((draw >> 16) & 255U) + (draw >> 24));
    const int32_t value = sheet.ink()[i] + (sum - 510) * grain / 256;
    pixels[i] = static_cast<uint8_t>(std::clamp(value, 0, 255));
  }
}

void draw(PhiloxStream& random, int32_t digit, std::span<uint8_t> pixels) {
  Sheet sheet;
  draw_digit(random, digit, sheet);
  draw_stray_lines(random, sheet);
  add_noise(random, sheet, pixels);
}

constexpr DrawnDataset::Recipe kRecipe = {.name = "digits",
                                          .train_images = 60000,
                                          .test_images = 10000,
                                          .shape = {1, Sheet::kSize, Sheet::kSize},
                                          .seed = 20240229,
                                          .purpose = RandomPurpose::kDigits,
                                          .draw = draw};

}  // namespace

Digits::Digits(Split split) : DrawnDataset(kRecipe, split) {}

DatasetPair open_digits(Splits splits) {
  DatasetPair pair{.train = {}, .test = std::make_shared<Digits>(Digits::Split::kTest)};
  if (splits == Splits::kBoth) pair.train = std::make_shared<Digits>(Digits::Split::kTrain);
  return pair;
}

}  // namespace lockstep::data
