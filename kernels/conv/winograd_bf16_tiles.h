// Tiles and transforms of Winograd's algorithm F(2x2,3x3), on 16 channels at a time.
// Included by winograd_bf16_*cpu.cpp alone.
#pragma once

#if LS_ISA == 4
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/conv/winograd_bf16_product.h"
#include "kernels/conv/winograd_images.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

inline constexpr int kEdge = 4;  // height and width of a window
inline constexpr int kPoints = kEdge * kEdge;
inline constexpr int kOutEdge = 2;  // height and width of a tile
inline constexpr int kFilterEdge = 3;
inline constexpr int kTaps = kFilterEdge * kFilterEdge;
// Padding of one cache line, in bf16 values, so that writes to the 16 points do not fall into the
// same cache set.
inline constexpr int64_t kApart = 32;

using Vector = Line::Vector;

using TiledImages = TiledBatch<BFloat16, kOutEdge>;
template <int kCount>
using Pixels = TilePixels<BFloat16, kOutEdge, kCount>;
using TileWindow = Pixels<kEdge>;
using GradientTile = Pixels<kOutEdge>;

// Rounds as the products' arithmetic does.
LS_BF16_CODE [[gnu::always_inline]] inline __m256i to_bf16(Vector values) {
  return __m256i(_mm512_cvtneps_pbh(__m512(values)));
}
LS_BF16_CODE [[gnu::always_inline]] inline void store_rounded(Vector values, BFloat16* to) {
  const __m256i rounded = to_bf16(values);
  std::memcpy(static_cast<void*>(to), &rounded, sizeof(rounded));
}
// Stores pairs of a value of `first` and the one of `second`.
LS_BF16_CODE [[gnu::always_inline]] inline void store_pairs(Vector first,
                                                            Vector second,
                                                            BFloat16* to) {
  const LineWords low = widened(LineHalves(to_bf16(first)));
  const LineWords high = widened(LineHalves(to_bf16(second)));
  const LineWords pairs = low | (high << 16);
  std::memcpy(static_cast<void*>(to), &pairs, sizeof(pairs));
}

struct Points {
  Vector at[kPoints];

  [[gnu::always_inline]] Vector* row(int64_t i) { return at + kEdge * i; }
};

[[gnu::always_inline]] inline void transform_four(Vector& a, Vector& b, Vector& c, Vector& d) {
  const Vector first = a - c, second = b + c, third = c - b, fourth = b - d;
  a = first, b = second, c = third, d = fourth;
}

// B^T d B for a vector of a window's channels, starting with c.
[[gnu::always_inline]] inline Points transformed(const TileWindow& window, int64_t c) {
  Points p{};
#pragma GCC unroll 16
  for (int i = 0; i < kPoints; ++i) p.at[i] = load_vector(window.at[i] + c);
#pragma GCC unroll 4
  for (int i = 0; i < kEdge; ++i) transform_four(p.at[i], p.at[i + 4], p.at[i + 8], p.at[i + 12]);
#pragma GCC unroll 4
  for (int i = 0; i < kPoints; i += kEdge) {
    transform_four(p.at[i], p.at[i + 1], p.at[i + 2], p.at[i + 3]);
  }
  return p;
}

// A dy A^T for a vector of a gradient tile's channels, starting with k.
[[gnu::always_inline]] inline Points transformed(const GradientTile& tile, int64_t k) {
  const Vector a = load_vector(tile.at[0] + k), b = load_vector(tile.at[1] + k);
  const Vector c = load_vector(tile.at[2] + k), d = load_vector(tile.at[3] + k);
  const Vector left[kEdge] = {a, a + c, a - c, -c};
  const Vector right[kEdge] = {b, b + d, b - d, -d};
  Points p{};
#pragma GCC unroll 4
  for (int i = 0; i < kEdge; ++i) {
    Vector* const row = p.row(i);
    row[0] = left[i], row[1] = left[i] + right[i], row[2] = left[i] - right[i], row[3] = -right[i];
  }
  return p;
}

// A^T p A: the tile's four outputs. load(point) returns the sums of a point.
template <class Load>
[[gnu::always_inline]] inline void outputs_of(const Load& load,
                                              Vector (&out)[kOutEdge * kOutEdge]) {
  Vector upper[kEdge], lower[kEdge];
#pragma GCC unroll 4
  for (int j = 0; j < kEdge; ++j) {
    const Vector second = load(kEdge + j), third = load(2 * kEdge + j);
    upper[j] = load(j) + second + third;
    lower[j] = second - third - load(3 * kEdge + j);
  }
  out[0] = upper[0] + upper[1] + upper[2];
  out[1] = upper[1] - upper[2] - upper[3];
  out[2] = lower[0] + lower[1] + lower[2];
  out[3] = lower[1] - lower[2] - lower[3];
}

// G g G^T of filters. load(tap) returns the weights of a tap.
template <class Load>
[[gnu::always_inline]] inline Points transformed_filters(const Load& load) {
  Vector rows[kEdge][kFilterEdge];
#pragma GCC unroll 3
  for (int s = 0; s < kFilterEdge; ++s) {
    const Vector first = load(s), last = load(2 * kFilterEdge + s);
    const Vector ends = 0.5F * (first + last), middle = 0.5F * load(kFilterEdge + s);
    rows[0][s] = first, rows[1][s] = ends + middle, rows[2][s] = ends - middle, rows[3][s] = last;
  }
  Points p{};
#pragma GCC unroll 4
  for (int i = 0; i < kEdge; ++i) {
    const Vector ends = 0.5F * (rows[i][0] + rows[i][2]), middle = 0.5F * rows[i][1];
    Vector* const row = p.row(i);
    row[0] = rows[i][0], row[1] = ends + middle, row[2] = ends - middle, row[3] = rows[i][2];
  }
  return p;
}

// G^T p G: the gradients of a filter's taps. load(point) returns the sums of a point.
template <class Load>
[[gnu::always_inline]] inline void filter_gradients(const Load& load,
                                                    Vector (&taps)[kFilterEdge * kFilterEdge]) {
  Vector rows[kFilterEdge][kEdge];
#pragma GCC unroll 4
  for (int j = 0; j < kEdge; ++j) {
    const Vector second = 0.5F * load(kEdge + j), third = 0.5F * load(2 * kEdge + j);
    rows[0][j] = load(j) + (second + third);
    rows[1][j] = second - third;
    rows[2][j] = (second + third) + load(3 * kEdge + j);
  }
#pragma GCC unroll 3
  for (int r = 0; r < kFilterEdge; ++r) {
    const Vector second = 0.5F * rows[r][1], third = 0.5F * rows[r][2];
    Vector* const row = taps + static_cast<int64_t>(kFilterEdge * r);
    row[0] = rows[r][0] + (second + third);
    row[1] = second - third;
    row[2] = (second + third) + rows[r][3];
  }
}

}  // namespace lockstep::kernels::LS_CPU
#endif
