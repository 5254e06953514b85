// The passes of resample(): the columns of each row, then rows. Whole numbers throughout, so that
// every processor gives the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "data/resample_weights.h"

namespace lockstep::data {

// The instructions of a pass.
enum class RowCode { kAny, kAvx2 };
RowCode best_row_code();

// Resizes rows of pixels of 3 bytes to `columns`. Requires: `columns` outlives it.
class RowResizer {
 public:
  explicit RowResizer(const ResampleWeights& columns, RowCode code = best_row_code());

  // `from` is the axis's pixel 0, of which those that a column takes lie before `end`; `to` has 3
  // bytes a column, mirrored when `flip`.
  void resize(const uint8_t* from, const uint8_t* end, bool flip, uint8_t* to) const;

 private:
  const ResampleWeights& columns_;
  // For AVX2: each column's pixels in groups of four, as many for each column.
  int64_t groups_ = 0;
  int64_t reach_ = 0;  // bytes from pixel 0 that are read
  std::vector<int16_t> halves_;
};

// A weighted sum of `rows` rows of `bytes` each, one behind the other.
void mix_rows(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to);

}  // namespace lockstep::data
