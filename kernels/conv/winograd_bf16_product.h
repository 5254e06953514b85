// Products of bf16 matrices whose inner dimension lies in pairs, summed in f32 by AVX512-BF16.
// Included by winograd_bf16_*cpu.cpp alone.
#pragma once

#if LS_ISA == 4
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "core/dtype.h"
#include "kernels/conv/winograd_images.h"
#include "kernels/support/cpu/float_line.h"

// Marks functions that use bf16 instructions, which x86-64-v4 does not include. Lambdas inside such
// a function must not use them, since the attribute does not apply to lambdas.
#define LS_BF16_CODE [[gnu::target("avx512bf16")]]

namespace lockstep::kernels::LS_CPU {

inline constexpr int kRowsAtOnce = 6;

// left[row, pair] is two adjacent values. Strides are in values.
struct PairedRows {
  const BFloat16* at;
  int64_t row_stride, pair_stride;

  PairedRows from(int64_t row) const { return {at + row * row_stride, row_stride, pair_stride}; }
};
// right[pair, column]: the columns of a pair are adjacent, with two values each.
struct PairedPanel {
  const BFloat16* at;
  int64_t columns;
};

template <int kRows, int kVectors, bool kAdds>
LS_BF16_CODE [[gnu::always_inline]] inline void multiply_rows(
    PairedRows left, PairedPanel right, int64_t pairs, float* sums, int64_t sums_stride) {
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = kAdds ? _mm512_loadu_ps(sums + r * sums_stride + v * kLineLanes) : __m512{};
    }
  }
  for (int64_t p = 0; p < pairs; ++p) {
    __m512bh columns[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(
          &columns[v], right.at + 2 * (p * right.columns + v * kLineLanes), sizeof(columns[v]));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int pair;
      std::memcpy(&pair, left.at + r * left.row_stride + p * left.pair_stride, sizeof(pair));
      const auto both = __m512bh(_mm512_set1_epi32(pair));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], both, columns[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(sums + r * sums_stride + v * kLineLanes, sum[r][v]);
    }
  }
}

template <int kVectors, bool kAdds>
LS_BF16_CODE void multiply_panel(
    int64_t rows, PairedRows left, PairedPanel right, int64_t pairs, float* sums) {
  int64_t row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
    multiply_rows<kRowsAtOnce, kVectors, kAdds>(
        left.from(row), right, pairs, sums + row * kPanel, kPanel);
  }
  for (; row + 2 <= rows; row += 2) {
    multiply_rows<2, kVectors, kAdds>(left.from(row), right, pairs, sums + row * kPanel, kPanel);
  }
  if (row < rows) {
    multiply_rows<1, kVectors, kAdds>(left.from(row), right, pairs, sums + row * kPanel, kPanel);
  }
}

// sums[row, column] = or += the sum over pairs, in order, of left * right. Rows of sums have kPanel
// floats. Requires: right.columns in 16, 32, 48, 64.
template <bool kAdds>
void multiply(int64_t rows, PairedRows left, PairedPanel right, int64_t pairs, float* sums) {
  switch (right.columns / kLineLanes) {
    case 1:
      return multiply_panel<1, kAdds>(rows, left, right, pairs, sums);
    case 2:
      return multiply_panel<2, kAdds>(rows, left, right, pairs, sums);
    case 3:
      return multiply_panel<3, kAdds>(rows, left, right, pairs, sums);
    default:
      return multiply_panel<4, kAdds>(rows, left, right, pairs, sums);
  }
}

}  // namespace lockstep::kernels::LS_CPU
#endif
