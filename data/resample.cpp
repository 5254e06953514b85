#include "data/resample.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace lockstep::data {
namespace {

constexpr int kFractionBits = 22;  // of a weight
constexpr int32_t kHalf = 1 << (kFractionBits - 1);

// Halves go up.
int64_t nearest(double x) {
  return static_cast<int64_t>(std::floor(x + 0.5));
}

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

// One side of an image: `extent` of its `in` pixels, after the first `skip` of them.
struct Axis {
  int64_t in = 0;
  double skip = 0;
  double extent = 0;
};

// The weights of results [first, first + count) of an axis resized to `out`.
class Weights {
 public:
  Weights(const Axis& axis, int64_t out, int64_t first, int64_t count) {
    const double scale = axis.extent / static_cast<double>(out);
    const double support = std::max(scale, 1.0);  // half the triangle's width
    pitch_ = static_cast<size_t>(2 * static_cast<int64_t>(std::ceil(support)) + 1);
    starts_.reserve(static_cast<size_t>(count));
    weights_.resize(static_cast<size_t>(count) * pitch_);
    std::vector<double> exact(pitch_);
    for (int64_t i = 0; i < count; ++i) {
      const double centre = axis.skip + (static_cast<double>(first + i) + 0.5) * scale;
      const auto begin = std::max<int64_t>(nearest(centre - support), 0);
      const auto end = std::min<int64_t>(nearest(centre + support), axis.in);
      double sum = 0;
      for (int64_t x = begin; x < end; ++x) {
        const double distance = std::abs((static_cast<double>(x) - centre + 0.5) * (1 / support));
        sum += exact[static_cast<size_t>(x - begin)] = std::max(1 - distance, 0.0);
      }
      for (int64_t k = 0; k < end - begin; ++k) {
        const double weight = exact[static_cast<size_t>(k)] / sum;
        weights_[static_cast<size_t>(i) * pitch_ + static_cast<size_t>(k)] =
            static_cast<int32_t>(nearest(weight * (1 << kFractionBits)));
      }
      starts_.push_back({begin, end - begin});
    }
  }

  struct Part {
    int64_t begin = 0;
    int64_t count = 0;
    int64_t end() const { return begin + count; }
  };

  int64_t size() const { return static_cast<int64_t>(starts_.size()); }
  const Part& part(int64_t i) const { return starts_[static_cast<size_t>(i)]; }
  const int32_t* of(int64_t i) const { return weights_.data() + static_cast<size_t>(i) * pitch_; }
  Part all() const { return {starts_.front().begin, starts_.back().end() - starts_.front().begin}; }

 private:
  size_t pitch_ = 0;
  std::vector<Part> starts_;
  std::vector<int32_t> weights_;
};

Extent extent_of(const Resample& what) {
  return what.within.value_or(Extent{.height = static_cast<double>(what.box.height),
                                     .width = static_cast<double>(what.box.width)});
}

Weights rows_of(const Resample& what) {
  const Extent extent = extent_of(what);
  return {{.in = what.box.height, .skip = extent.top, .extent = extent.height},
          what.size.height,
          what.window.top,
          what.window.height};
}
Weights columns_of(const Resample& what) {
  const Extent extent = extent_of(what);
  return {{.in = what.box.width, .skip = extent.left, .extent = extent.width},
          what.size.width,
          what.window.left,
          what.window.width};
}

// Both passes are compiled twice, for any processor and for AVX2: whole numbers, so the same bytes.
#define LS_INTO_EITHER [[gnu::always_inline]] inline

using Lanes [[gnu::vector_size(16)]] = int32_t;  // red, green, blue and nothing
using Bytes [[gnu::vector_size(4)]] = uint8_t;

LS_INTO_EITHER Lanes pixel_at(const uint8_t* from) {
  uint16_t red_green = 0;
  std::memcpy(&red_green, from, sizeof(red_green));
  const uint32_t pixel = red_green | static_cast<uint32_t>(from[2]) << 16;
  return __builtin_convertvector(std::bit_cast<Bytes>(pixel), Lanes);
}

// As rounded(), of three channels.
LS_INTO_EITHER void put_pixel(const Lanes& sum, uint8_t* to) {
  Lanes value = sum >> kFractionBits;
  value = value < 0 ? 0 : value;
  value = value > 255 ? 255 : value;
  const auto pixel = std::bit_cast<uint32_t>(__builtin_convertvector(value, Bytes));
  const auto red_green = static_cast<uint16_t>(pixel);
  std::memcpy(to, &red_green, sizeof(red_green));
  to[2] = static_cast<uint8_t>(pixel >> 16);
}

// One row of the image, resized to the window's columns. `from` is the box's column 0.
LS_INTO_EITHER void resize_row_body(const Weights& columns,
                                    const uint8_t* from,
                                    bool flip,
                                    uint8_t* to) {
  const int64_t step = flip ? -3 : 3;
  if (flip) to += (columns.size() - 1) * 3;
  for (int64_t i = 0; i < columns.size(); ++i, to += step) {
    const Weights::Part& part = columns.part(i);
    const int32_t* const weights = columns.of(i);
    const uint8_t* pixel = from + part.begin * 3;
    Lanes sum = {kHalf, kHalf, kHalf, kHalf};
    for (int64_t k = 0; k < part.count; ++k, pixel += 3) sum += pixel_at(pixel) * weights[k];
    put_pixel(sum, to);
  }
}

// A weighted sum of rows of `bytes` each.
LS_INTO_EITHER void mix_rows_body(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to) {
  constexpr int64_t kBlock = 32;
  for (int64_t first = 0; first < bytes; first += kBlock) {
    const int64_t begin = std::max<int64_t>(std::min(first, bytes - kBlock), 0);
    const int64_t count = std::min(kBlock, bytes);
    std::array<int32_t, kBlock> sums{};
    sums.fill(kHalf);
    if (count == kBlock) {
      for (int64_t k = 0; k < rows; ++k) {
        const uint8_t* const row = from + k * bytes + begin;
        for (size_t i = 0; i < kBlock; ++i) sums[i] += weights[k] * row[i];
      }
      for (size_t i = 0; i < kBlock; ++i) to[static_cast<size_t>(begin) + i] = rounded(sums[i]);
      continue;
    }
    for (int64_t k = 0; k < rows; ++k) {
      const uint8_t* const row = from + k * bytes;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) sums[i] += weights[k] * row[i];
    }
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) to[i] = rounded(sums[i]);
  }
}

using ResizeRow = void(const Weights& columns, const uint8_t* from, bool flip, uint8_t* to);
using MixRows =
    void(const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to);

void resize_row_anywhere(const Weights& columns, const uint8_t* from, bool flip, uint8_t* to) {
  resize_row_body(columns, from, flip, to);
}
void mix_rows_anywhere(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to) {
  mix_rows_body(from, bytes, rows, weights, to);
}
[[gnu::target("avx2")]] void resize_row_avx2(const Weights& columns,
                                             const uint8_t* from,
                                             bool flip,
                                             uint8_t* to) {
  resize_row_body(columns, from, flip, to);
}
[[gnu::target("avx2")]] void mix_rows_avx2(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to) {
  mix_rows_body(from, bytes, rows, weights, to);
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

}  // namespace

Resample shrunk_by(int shrink, const Resample& what, const ImageSize& shrunk) {
  if (shrink == 1) return what;
  const auto down = [&](int64_t pixels) { return static_cast<double>(pixels) / shrink; };
  const auto end = [&](int64_t pixels, int64_t side) {
    return std::min((pixels + shrink - 1) / shrink, side);
  };
  Resample result = what;
  Region& box = result.box;
  box.top = what.box.top / shrink;
  box.left = what.box.left / shrink;
  box.height = end(what.box.top + what.box.height, shrunk.height) - box.top;
  box.width = end(what.box.left + what.box.width, shrunk.width) - box.left;
  result.within = Extent{.top = down(what.box.top) - static_cast<double>(box.top),
                         .left = down(what.box.left) - static_cast<double>(box.left),
                         .height = down(what.box.height),
                         .width = down(what.box.width)};
  return result;
}

Region needed(const Resample& what) {
  const Weights::Part rows = rows_of(what).all();
  const Weights::Part columns = columns_of(what).all();
  return {.top = what.box.top + rows.begin,
          .left = what.box.left + columns.begin,
          .height = rows.count,
          .width = columns.count};
}

void resample(const Image& image, const Resample& what, bool flip, std::span<uint8_t> to) {
  const Weights rows = rows_of(what);
  const Weights columns = columns_of(what);
  ResizeRow* const resize_row = has_avx2() ? resize_row_avx2 : resize_row_anywhere;
  MixRows* const mix_rows = has_avx2() ? mix_rows_avx2 : mix_rows_anywhere;
  const int64_t bytes = what.window.width * 3;
  thread_local std::vector<uint8_t> narrow;  // the needed rows, their columns resized
  narrow.resize(static_cast<size_t>(rows.all().count * bytes));
  for (int64_t y = 0; y < rows.all().count; ++y) {
    const uint8_t* const row = image.row(what.box.top + rows.all().begin + y);
    const uint8_t* const box_start = row - (image.region.left - what.box.left) * 3;
    resize_row(columns, box_start, flip, narrow.data() + y * bytes);
  }
  for (int64_t i = 0; i < what.window.height; ++i) {
    const Weights::Part& part = rows.part(i);
    const uint8_t* const first = narrow.data() + (part.begin - rows.all().begin) * bytes;
    mix_rows(first, bytes, part.count, rows.of(i), to.data() + i * bytes);
  }
}

}  // namespace lockstep::data
