// Transforms of Winograd's algorithm F(4x4,3x3) in f32, on a vector of channels at a time.
// Included by winograd_f32_*cpu.cpp alone.
#pragma once

#if LS_ISA == 3
#include <algorithm>
#include <cstdint>

#include <immintrin.h>

#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

inline constexpr int kTile = 4;  // outputs in a row
inline constexpr int kWindow = 6;
inline constexpr int kPoints = kWindow * kWindow;
inline constexpr int kFilter = 3;
inline constexpr int kTaps = kFilter * kFilter;

using Vector = Line::Vector;
inline constexpr int64_t kLanes = Line::kVectorLanes;

// Polynomials are evaluated at 0, a, -a, b, -b and infinity. Of points that f32 holds exactly,
// these give the smallest errors: half those of 1 and 2.
inline constexpr float kA = 0.625F, kB = 1.5F;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB;
inline constexpr float kOfZero = 1 / (kA2 * kB2);
inline constexpr float kOfA = 1 / (2 * kA2 * (kA2 - kB2)), kOfB = 1 / (2 * kB2 * (kB2 - kA2));

// a * b + c, rounded once.
[[gnu::always_inline]] inline Vector multiply_add(float a, Vector b, Vector c) {
  return Vector(_mm256_fmadd_ps(_mm256_set1_ps(a), __m256(b), __m256(c)));
}

// A row of B^T d: a window.
struct WindowLine {
  static constexpr int kFrom = kWindow, kTo = kWindow;

  [[gnu::always_inline]] static void transform(const Vector (&d)[kFrom], Vector (&p)[kTo]) {
    const Vector even_a = multiply_add(-kB2, d[2], d[4]),
                 odd_a = kA * multiply_add(-kB2, d[1], d[3]);
    const Vector even_b = multiply_add(-kA2, d[2], d[4]),
                 odd_b = kB * multiply_add(-kA2, d[1], d[3]);
    p[0] = multiply_add(kA2 * kB2, d[0], multiply_add(-kA2 - kB2, d[2], d[4]));
    p[1] = even_a + odd_a, p[2] = even_a - odd_a;
    p[3] = even_b + odd_b, p[4] = even_b - odd_b;
    p[5] = multiply_add(kA2 * kB2, d[1], multiply_add(-kA2 - kB2, d[3], d[5]));
  }
};

// A row of A y: a tile of gradients.
struct GradientLine {
  static constexpr int kFrom = kTile, kTo = kWindow;

  [[gnu::always_inline]] static void transform(const Vector (&y)[kFrom], Vector (&p)[kTo]) {
    const Vector even_a = multiply_add(kA2, y[2], y[0]), odd_a = kA * multiply_add(kA2, y[3], y[1]);
    const Vector even_b = multiply_add(kB2, y[2], y[0]), odd_b = kB * multiply_add(kB2, y[3], y[1]);
    p[0] = y[0];
    p[1] = even_a + odd_a, p[2] = even_a - odd_a;
    p[3] = even_b + odd_b, p[4] = even_b - odd_b;
    p[5] = y[3];
  }
};

// A row of A^T p: outputs.
struct OutputLine {
  static constexpr int kFrom = kWindow, kTo = kTile;

  [[gnu::always_inline]] static void transform(const Vector (&p)[kFrom], Vector (&y)[kTo]) {
    const Vector even_a = p[1] + p[2], odd_a = kA * (p[1] - p[2]);
    const Vector even_b = p[3] + p[4], odd_b = kB * (p[3] - p[4]);
    y[0] = p[0] + even_a + even_b;
    y[1] = odd_a + odd_b;
    y[2] = multiply_add(kA2, even_a, kB2 * even_b);
    y[3] = multiply_add(kA2, odd_a, multiply_add(kB2, odd_b, p[5]));
  }
};

// A row of G g: a filter.
struct FilterLine {
  static constexpr int kFrom = kFilter, kTo = kWindow;

  [[gnu::always_inline]] static void transform(const Vector (&g)[kFrom], Vector (&p)[kTo]) {
    const Vector even_a = kOfA * multiply_add(kA2, g[2], g[0]), odd_a = kOfA * kA * g[1];
    const Vector even_b = kOfB * multiply_add(kB2, g[2], g[0]), odd_b = kOfB * kB * g[1];
    p[0] = kOfZero * g[0];
    p[1] = even_a + odd_a, p[2] = even_a - odd_a;
    p[3] = even_b + odd_b, p[4] = even_b - odd_b;
    p[5] = g[2];
  }
};

// A row of G^T p: the gradient of a filter.
struct FilterGradientLine {
  static constexpr int kFrom = kWindow, kTo = kFilter;

  [[gnu::always_inline]] static void transform(const Vector (&p)[kFrom], Vector (&g)[kTo]) {
    const Vector even_a = kOfA * (p[1] + p[2]), odd_a = kOfA * kA * (p[1] - p[2]);
    const Vector even_b = kOfB * (p[3] + p[4]), odd_b = kOfB * kB * (p[3] - p[4]);
    g[0] = multiply_add(kOfZero, p[0], even_a + even_b);
    g[1] = odd_a + odd_b;
    g[2] = multiply_add(kA2, even_a, multiply_add(kB2, even_b, p[5]));
  }
};

// m x m^T, where Rows gives m's product with a line: load(i) gives x's value i and store(i, value)
// takes the result's, both row by row.
template <class Rows, class Load, class Store>
[[gnu::always_inline]] inline void transform_square(const Load& load, const Store& store) {
  Vector half[Rows::kTo][Rows::kFrom];
#pragma GCC unroll 6
  for (int j = 0; j < Rows::kFrom; ++j) {
    Vector column[Rows::kFrom], points[Rows::kTo];
#pragma GCC unroll 6
    for (int i = 0; i < Rows::kFrom; ++i) column[i] = load(i * Rows::kFrom + j);
    Rows::transform(column, points);
#pragma GCC unroll 6
    for (int i = 0; i < Rows::kTo; ++i) half[i][j] = points[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < Rows::kTo; ++i) {
    Vector points[Rows::kTo];
    Rows::transform(half[i], points);
#pragma GCC unroll 6
    for (int j = 0; j < Rows::kTo; ++j) store(i * Rows::kTo + j, points[j]);
  }
}

}  // namespace lockstep::kernels::LS_CPU
#endif
