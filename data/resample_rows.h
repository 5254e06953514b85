// The two passes of resample(), first within each row, then across rows, and their weights. Integer
// arithmetic throughout, so that every processor gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/codecs/image.h"

namespace lockstep::data {

// One axis of an image: [skip, skip + extent) of its `in` pixels is resized.
struct Axis {
  int64_t in = 0;
  double skip = 0;
  double extent = 0;
};

// Weights of a resized axis: triangles or bicubic curves as wide as the scale.
class ResampleWeights {
 public:
  // Weights are integer multiples of 2^-22. The weights of a result add up to about 1, and the
  // positive ones to less than 2, so weighted sums of bytes fit in 32 bits.
  static constexpr int kFractionBits = 22;

  // Weights of the results [first, first + count) of the axis resized to `out`.
  ResampleWeights(const Axis& axis, int64_t out, int64_t first, int64_t count, Interpolation by);

  struct Part {
    int64_t begin = 0;
    int64_t count = 0;
    int64_t end() const { return begin + count; }
  };

  int64_t size() const { return static_cast<int64_t>(parts_.size()); }
  const Part& part(int64_t i) const { return parts_[static_cast<size_t>(i)]; }
  const int32_t* of(int64_t i) const { return weights_.data() + static_cast<size_t>(i) * pitch_; }
  Part all() const { return {parts_.front().begin, parts_.back().end() - parts_.front().begin}; }

 private:
  size_t pitch_ = 0;
  std::vector<Part> parts_;
  std::vector<int32_t> weights_;
};

// The instruction set of a pass.
enum class RowCode { kAny, kAvx2 };
RowCode best_row_code();

// Resizes rows of pixels of 3 bytes to `columns`. Requires: `columns` outlives it.
class RowResizer {
 public:
  explicit RowResizer(const ResampleWeights& columns, RowCode code = best_row_code());

  // `from` points at pixel 0 of the axis; all pixels that a column needs lie before `end`. `to`
  // receives 3 bytes per column, mirrored if `flip`.
  void resize(const uint8_t* from, const uint8_t* end, bool flip, uint8_t* to) const;

 private:
  const ResampleWeights& columns_;
  // For AVX2: each column's pixels are taken in groups of four; all columns have the same number of
  // groups.
  int64_t groups_ = 0;
  int64_t reach_ = 0;  // bytes from pixel 0 that are read
  std::vector<int16_t> halves_;
};

// Writes the weighted sum of `rows` consecutive rows of `bytes` each.
void mix_rows(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to);

}  // namespace lockstep::data
