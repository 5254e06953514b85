#include "data/resample.h"

#include <algorithm>
#include <cmath>
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

// The weights of results [first, first + count) of an axis of `in` pixels resized to `out`.
class Weights {
 public:
  Weights(int64_t in, int64_t out, int64_t first, int64_t count) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const double support = std::max(scale, 1.0);  // half the triangle's width
    pitch_ = static_cast<size_t>(2 * static_cast<int64_t>(std::ceil(support)) + 1);
    starts_.reserve(static_cast<size_t>(count));
    weights_.resize(static_cast<size_t>(count) * pitch_);
    std::vector<double> exact(pitch_);
    for (int64_t i = 0; i < count; ++i) {
      const double centre = (static_cast<double>(first + i) + 0.5) * scale;
      const auto begin = std::max<int64_t>(nearest(centre - support), 0);
      const auto end = std::min<int64_t>(nearest(centre + support), in);
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

Weights rows_of(const Resample& what) {
  return {what.box.height, what.size.height, what.window.top, what.window.height};
}
Weights columns_of(const Resample& what) {
  return {what.box.width, what.size.width, what.window.left, what.window.width};
}

// One row of the image, resized to the window's columns. `from` is the box's column 0.
void resize_row(const Weights& columns, const uint8_t* from, bool flip, uint8_t* to) {
  const int64_t step = flip ? -3 : 3;
  if (flip) to += (columns.size() - 1) * 3;
  for (int64_t i = 0; i < columns.size(); ++i, to += step) {
    const Weights::Part& part = columns.part(i);
    const int32_t* const weights = columns.of(i);
    const uint8_t* pixel = from + part.begin * 3;
    int32_t red = kHalf;
    int32_t green = kHalf;
    int32_t blue = kHalf;
    for (int64_t k = 0; k < part.count; ++k, pixel += 3) {
      red += weights[k] * pixel[0];
      green += weights[k] * pixel[1];
      blue += weights[k] * pixel[2];
    }
    to[0] = rounded(red);
    to[1] = rounded(green);
    to[2] = rounded(blue);
  }
}

// A weighted sum of rows of `bytes` each.
void mix_rows(const uint8_t* from,
              int64_t bytes,
              int64_t rows,
              const int32_t* weights,
              std::vector<int32_t>& sums,
              uint8_t* to) {
  std::ranges::fill(sums, kHalf);
  for (int64_t k = 0; k < rows; ++k, from += bytes) {
    const int32_t weight = weights[k];
    for (int64_t i = 0; i < bytes; ++i) sums[static_cast<size_t>(i)] += weight * from[i];
  }
  for (int64_t i = 0; i < bytes; ++i) to[i] = rounded(sums[static_cast<size_t>(i)]);
}

}  // namespace

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
  const int64_t bytes = what.window.width * 3;
  thread_local std::vector<uint8_t> narrow;  // the needed rows, their columns resized
  thread_local std::vector<int32_t> sums;
  narrow.resize(static_cast<size_t>(rows.all().count * bytes));
  sums.resize(static_cast<size_t>(bytes));
  for (int64_t y = 0; y < rows.all().count; ++y) {
    const uint8_t* const row = image.row(image.region.top + y);
    const uint8_t* const box_start = row - (image.region.left - what.box.left) * 3;
    resize_row(columns, box_start, flip, narrow.data() + y * bytes);
  }
  for (int64_t i = 0; i < what.window.height; ++i) {
    const Weights::Part& part = rows.part(i);
    const uint8_t* const first = narrow.data() + (part.begin - rows.all().begin) * bytes;
    mix_rows(first, bytes, part.count, rows.of(i), sums, to.data() + i * bytes);
  }
}

}  // namespace lockstep::data
