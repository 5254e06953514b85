// Products of f32 matrices for Winograd's algorithm. Included by winograd_f32_*cpu.cpp alone.
#pragma once

#if LS_ISA == 3
#include <algorithm>
#include <cstdint>

#include "kernels/conv/winograd_f32_transforms.h"
#include "kernels/conv/winograd_images.h"

namespace lockstep::kernels::LS_CPU {

inline constexpr int64_t kColumns = 2 * kLanes;  // of the inner loop, whose sums fill the registers
inline constexpr int kRowsAtOnce = 6;
// Padding of one cache line, in floats, so that writes to the 36 points do not fall into the same
// cache set.
inline constexpr int64_t kApart = 16;

// left[row, i]. Strides are in values.
struct LeftRows {
  const float* at;
  int64_t row_stride, inner_stride;

  LeftRows from(int64_t row) const { return {at + row * row_stride, row_stride, inner_stride}; }
};

// right[i, column], stored as consecutive strips of kColumns columns; the last strip may have half
// as many.
struct RightPanel {
  const float* at;
  int64_t columns;

  // The offset of a column's first value, for strips with `inner` rows, and the distance of its
  // rows.
  static int64_t place(int64_t column, int64_t inner) {
    return column / kColumns * kColumns * inner + column % kColumns;
  }
  static int64_t row_stride(int64_t column, int64_t columns) {
    return std::min(kColumns, columns - column / kColumns * kColumns);
  }
};

template <int kRows, int kVectors, bool kAdds>
[[gnu::always_inline]] inline void multiply_rows(LeftRows left,
                                                 const float* right,
                                                 int64_t inner,
                                                 float* sums) {
  Vector sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = kAdds ? load_vector(sums + r * kPanel + v * kLanes) : Vector{};
    }
  }
  for (int64_t i = 0; i < inner; ++i) {
    Vector columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = load_vector(right + i * kVectors * kLanes + v * kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float value = left.at[r * left.row_stride + i * left.inner_stride];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = multiply_add(value, columns[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store_vector(sum[r][v], sums + r * kPanel + v * kLanes);
  }
}

template <int kVectors, bool kAdds>
void multiply_strip(int64_t rows, LeftRows left, const float* right, int64_t inner, float* sums) {
  const auto take = [&]<int kRows>(int64_t row) {
    multiply_rows<kRows, kVectors, kAdds>(left.from(row), right, inner, sums + row * kPanel);
    return row + kRows;
  };
  int64_t row = 0;
  while (rows - row >= 4) {  // 8 rows are taken as 4 and 4: single rows are slow
    row = rows - row >= kRowsAtOnce && rows - row != 8 ? take.template operator()<kRowsAtOnce>(row)
                                                       : take.template operator()<4>(row);
  }
  while (row < rows) row = take.template operator()<1>(row);
}

// sums[row, column] = or += the sum over i, in order, of left * right. Rows of sums have kPanel
// floats. Requires: right.columns a multiple of 8, at most kPanel.
template <bool kAdds>
void multiply(int64_t rows, LeftRows left, RightPanel right, int64_t inner, float* sums) {
  int64_t column = 0;
  for (; column + kColumns <= right.columns; column += kColumns) {
    multiply_strip<2, kAdds>(rows, left, right.at + column * inner, inner, sums + column);
  }
  if (column < right.columns) {
    multiply_strip<1, kAdds>(rows, left, right.at + column * inner, inner, sums + column);
  }
}

}  // namespace lockstep::kernels::LS_CPU
#endif
