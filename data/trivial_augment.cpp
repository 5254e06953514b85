#include "data/trivial_augment.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/core.h>

#include "core/words.h"

namespace lockstep::data {
namespace {

constexpr int64_t kColors = 3;
constexpr int64_t kBins = 31;
using Table = std::array<uint8_t, 256>;

// torch.linspace(start, end, 31)[bin].
float linspace_at(float start, float end, int64_t bin) {
  const float step = (end - start) / static_cast<float>(kBins - 1);
  if (bin < kBins / 2) return start + step * static_cast<float>(bin);
  return end - step * static_cast<float>(kBins - 1 - bin);
}

uint8_t gray(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >>
                              16);
}

// Nearest-pixel transform in fixed point, sampled at pixel centers, as in Pillow.
void transform(const Affine& from, const ImageSize& size, std::span<uint8_t> pixels) {
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

void fill_plain(TrivialOp op,
                const ImageSize& size,
                std::span<const uint8_t> pixels,
                std::span<uint8_t> plain) {
  if (op == TrivialOp::kBrightness) {
    std::ranges::fill(plain, uint8_t{0});
    return;
  }
  if (op == TrivialOp::kSharpness) return smooth(size, pixels, plain);
  int64_t sum = 0;
  for (size_t i = 0; i < pixels.size(); i += kColors) {
    const uint8_t value = gray(pixels.data() + i);
    sum += value;
    for (size_t c = 0; c < kColors; ++c) plain[i + c] = value;
  }
  if (op == TrivialOp::kColor) return;
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
void recolor(std::span<uint8_t> pixels, const MakeTable& table_of) {
  for (size_t c = 0; c < kColors; ++c) {
    std::array<int64_t, 256> counts{};
    for (size_t i = c; i < pixels.size(); i += kColors) ++counts[pixels[i]];
    const Table table = table_of(counts);
    for (size_t i = c; i < pixels.size(); i += kColors) pixels[i] = table[pixels[i]];
  }
}

Table fixed_table(const TrivialChange& what) {
  Table table{};
  constexpr int kBits = 8;  // of a pixel; timm's magnitude may keep more, or fewer than none
  const int dropped = std::clamp(kBits - static_cast<int>(what.magnitude), 0, kBits);
  for (int i = 0; i < 256; ++i) {
    const bool inverts = static_cast<float>(i) >= what.magnitude;
    const int solarized = inverts ? 255 - i : i;
    table[static_cast<size_t>(i)] = static_cast<uint8_t>(
        what.op == TrivialOp::kPosterize ? i >> dropped << dropped : solarized);
  }
  return table;
}

}  // namespace

TrivialChange trivial_change(TrivialOp op, int64_t bin, bool negative) {
  const auto signed_line = [&](float end) {
    const float magnitude = linspace_at(0, end, bin);
    return TrivialChange{op, negative ? -magnitude : magnitude};
  };
  switch (op) {
    case TrivialOp::kTranslateX:
    case TrivialOp::kTranslateY:
      return signed_line(32);
    case TrivialOp::kRotate:
      return signed_line(135);
    case TrivialOp::kPosterize:  // rounds halves to even
      return {op, 8 - std::nearbyint(static_cast<float>(bin) / 5)};
    case TrivialOp::kSolarize:
      return {op, linspace_at(255, 0, bin)};
    case TrivialOp::kIdentity:
    case TrivialOp::kAutoContrast:
    case TrivialOp::kEqualize:
      return {op, 0};
    default:
      return signed_line(0.99F);
  }
}

void change(const TrivialChange& what, const ImageSize& size, std::span<uint8_t> pixels) {
  const auto magnitude = static_cast<double>(what.magnitude);
  const auto warp = [&](const Affine& from) {
    if (what.bilinear) return resample(from, Interpolation::kBilinear, {}, size, pixels);
    transform(from, size, pixels);
  };
  switch (what.op) {
    case TrivialOp::kIdentity:
      return;
    case TrivialOp::kShearX:
      return warp({.xy = magnitude});
    case TrivialOp::kShearY:
      return warp({.yx = magnitude});
    case TrivialOp::kTranslateX:
      return warp({.x0 = -std::trunc(magnitude)});
    case TrivialOp::kTranslateY:
      return warp({.y0 = -std::trunc(magnitude)});
    case TrivialOp::kRotate:
      return warp(rotation(magnitude, size));
    case TrivialOp::kPosterize:
    case TrivialOp::kSolarize:
      return recolor(pixels, [&](const auto&) { return fixed_table(what); });
    case TrivialOp::kAutoContrast:
      return recolor(pixels, autocontrast);
    case TrivialOp::kEqualize:
      return recolor(pixels, equalize);
    default:
      return enhance(what.op, 1.0F + what.magnitude, size, pixels);
  }
}

void enhance(TrivialOp op, float factor, const ImageSize& size, std::span<uint8_t> pixels) {
  thread_local std::vector<uint8_t> plain;
  plain.resize(pixels.size());
  fill_plain(op, size, pixels, plain);
  blend(factor, plain, pixels);
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

}  // namespace lockstep::data
