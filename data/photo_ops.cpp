#include "data/photo_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/core.h>

#include "core/words.h"

namespace lockstep::data {
namespace {

constexpr int64_t kColors = 3;
using Table = std::array<uint8_t, 256>;

uint8_t gray(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >>
                              16);
}

// Pillow rounds sines and cosines to 15 decimal digits, so that quarter turns are exact. Rounding x
// * 1e15 would differ for an eighth of a turn, where the product falls on a half.
double to_15_digits(double x) {
  return parse_float(fmt::format("{:.15f}", x)).value_or(x);
}

// plain + factor * (pixel - plain), where `plain` is the image without color, contrast or edges, or
// black.
void blend(float factor, std::span<const uint8_t> plain, std::span<uint8_t> pixels) {
  if (factor == 1) return;
  for (size_t i = 0; i < pixels.size(); ++i) {
    const auto base = static_cast<float>(plain[i]);
    pixels[i] = clip_to_byte(base + factor * static_cast<float>(pixels[i] - plain[i]));
  }
}

// Averages each pixel with its neighbors; pixels at the edge are copied.
void smooth(const ImageSize& size, std::span<const uint8_t> from, std::span<uint8_t> to) {
  std::ranges::copy(from, to.begin());
  const int64_t row = size.width * kColors;
  for (int64_t y = 1; y < size.height - 1; ++y) {
    for (int64_t i = y * row + kColors; i < (y + 1) * row - kColors; ++i) {
      int64_t sum = int64_t{4} * from[static_cast<size_t>(i)];
      for (const int64_t line : {i - row, i, i + row}) {
        for (const int64_t place : {line - kColors, line, line + kColors}) {
          sum += from[static_cast<size_t>(place)];
        }
      }
      to[static_cast<size_t>(i)] = static_cast<uint8_t>((2 * sum + 13) / 26);
    }
  }
}

void fill_plain(PhotoOp op,
                const ImageSize& size,
                std::span<const uint8_t> pixels,
                std::span<uint8_t> plain) {
  if (op == PhotoOp::kBrightness) {
    std::ranges::fill(plain, uint8_t{0});
    return;
  }
  if (op == PhotoOp::kSharpness) return smooth(size, pixels, plain);
  int64_t sum = 0;
  for (size_t i = 0; i < pixels.size(); i += kColors) {
    const uint8_t value = gray(pixels.data() + i);
    sum += value;
    for (size_t c = 0; c < kColors; ++c) plain[i + c] = value;
  }
  if (op == PhotoOp::kColor) return;
  const double mean = static_cast<double>(sum) / static_cast<double>(size.height * size.width);
  std::ranges::fill(plain, static_cast<uint8_t>(std::floor(mean + 0.5)));
}

// Returns the table that maps the values of one color, where counts[value] is the image's
// histogram.
Table autocontrast(const std::array<int64_t, 256>& counts) {
  Table table{};
  int64_t low = 0, high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  const double scale = high > low ? 255.0 / static_cast<double>(high - low) : 1;
  const double offset = high > low ? static_cast<double>(-low) * scale : 0;
  for (size_t i = 0; i < 256; ++i) table[i] = clip_to_byte(static_cast<double>(i) * scale + offset);
  return table;
}

Table equalize(const std::array<int64_t, 256>& counts) {
  Table table{};
  int64_t all = 0, last = 0;
  for (const int64_t count : counts) {
    all += count;
    if (count > 0) last = count;
  }
  const int64_t step = (all - last) / 255;
  int64_t sum = step / 2;
  for (size_t i = 0; i < 256; ++i) {
    table[i] = step == 0 ? static_cast<uint8_t>(i)
                         : static_cast<uint8_t>(std::min<int64_t>(255, sum / step));
    sum += counts[i];
  }
  return table;
}

template <class MakeTable>
void map_colors(std::span<uint8_t> pixels, const MakeTable& table_of) {
  for (size_t c = 0; c < kColors; ++c) {
    std::array<int64_t, 256> counts{};
    for (size_t i = c; i < pixels.size(); i += kColors) ++counts[pixels[i]];
    const Table table = table_of(counts);
    for (size_t i = c; i < pixels.size(); i += kColors) pixels[i] = table[pixels[i]];
  }
}

// Keeps the upper bits of a value: all for 8 or more, none for less than 1.
uint8_t posterize(int value, float bits) {
  constexpr int kBits = 8;
  const int dropped = std::clamp(kBits - static_cast<int>(bits), 0, kBits);
  return static_cast<uint8_t>(value >> dropped << dropped);
}

Affine rotation(double degrees, const ImageSize& size) {
  double turn = std::fmod(degrees, 360.0);
  if (turn < 0) turn += 360;
  const double angle = -(turn * (std::numbers::pi / 180));
  Affine from{.xx = to_15_digits(std::cos(angle)),
              .xy = to_15_digits(std::sin(angle)),
              .yx = to_15_digits(-std::sin(angle)),
              .yy = to_15_digits(std::cos(angle))};
  const double x = static_cast<double>(size.width) / 2;
  const double y = static_cast<double>(size.height) / 2;
  from.x0 = from.xx * -x + from.xy * -y + x;
  from.y0 = from.yx * -x + from.yy * -y + y;
  return from;
}

uint8_t map_value(PhotoOp op, float argument, int value) {
  switch (op) {
    case PhotoOp::kPosterize:
      return posterize(value, argument);
    case PhotoOp::kSolarizeAdd:
      return static_cast<uint8_t>(value < 128 ? std::min(255, value + static_cast<int>(argument))
                                              : value);
    default: {  // kSolarize, kInvert
      const float threshold = op == PhotoOp::kInvert ? 0 : argument;
      return static_cast<uint8_t>(static_cast<float>(value) >= threshold ? 255 - value : value);
    }
  }
}

}  // namespace

void recolor(PhotoOp op, float argument, const ImageSize& size, std::span<uint8_t> pixels) {
  switch (op) {
    case PhotoOp::kAutoContrast:
      return map_colors(pixels, autocontrast);
    case PhotoOp::kEqualize:
      return map_colors(pixels, equalize);
    case PhotoOp::kInvert:
    case PhotoOp::kPosterize:
    case PhotoOp::kSolarize:
    case PhotoOp::kSolarizeAdd:
      for (uint8_t& value : pixels) value = map_value(op, argument, value);
      return;
    default: {
      thread_local std::vector<uint8_t> plain;
      plain.resize(pixels.size());
      fill_plain(op, size, pixels, plain);
      blend(argument, plain, pixels);
    }
  }
}

Affine warp_of(PhotoOp op, double argument, const ImageSize& size) {
  switch (op) {
    case PhotoOp::kShearX:
      return {.xy = argument};
    case PhotoOp::kShearY:
      return {.yx = argument};
    case PhotoOp::kTranslateX:
      return {.x0 = argument};
    case PhotoOp::kTranslateY:
      return {.y0 = argument};
    default:
      return rotation(argument, size);
  }
}

void warp_nearest(const Affine& from, const ImageSize& size, std::span<uint8_t> pixels) {
  thread_local std::vector<uint8_t> original;
  original.assign(pixels.begin(), pixels.end());
  const auto fixed = [](double x) { return static_cast<int64_t>(std::floor(x * 65536 + 0.5)); };
  const int64_t xx = fixed(from.xx), xy = fixed(from.xy);
  const int64_t yx = fixed(from.yx), yy = fixed(from.yy);
  int64_t row_x = fixed(from.x0 + from.xx * 0.5 + from.xy * 0.5);
  int64_t row_y = fixed(from.y0 + from.yx * 0.5 + from.yy * 0.5);
  uint8_t* out = pixels.data();
  for (int64_t row = 0; row < size.height; ++row, row_x += xy, row_y += yy) {
    int64_t at_x = row_x;
    int64_t at_y = row_y;
    for (int64_t column = 0; column < size.width; ++column, at_x += xx, at_y += yx) {
      const int64_t x = at_x >> 16;
      const int64_t y = at_y >> 16;
      const bool inside = x >= 0 && x < size.width && y >= 0 && y < size.height;
      const uint8_t* const in = original.data() + (y * size.width + x) * kColors;
      for (int64_t c = 0; c < kColors; ++c) *out++ = inside ? in[c] : uint8_t{0};
    }
  }
}

}  // namespace lockstep::data
