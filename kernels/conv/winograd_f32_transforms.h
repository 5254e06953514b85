// Transforms of Winograd's algorithms F(4x4,3x3) and F(2x2,5x5) in f32, on a vector of channels at
// a time. Both have windows of 6x6 pixels and the same points.
// Included by winograd_f32_*cpu.cpp alone.
#pragma once

#if LS_ISA == 3
#include <algorithm>
#include <cstdint>

#include <immintrin.h>

#include "core/shape.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

inline constexpr int kWindow = 6;
inline constexpr int kPoints = kWindow * kWindow;
template <int kFilter>
inline constexpr int kTile = kWindow + 1 - kFilter;  // height and width of a tile of outputs
template <int kFilter>
inline constexpr int kTaps = kFilter * kFilter;

using Vector = Line::Vector;
inline constexpr int64_t kLanes = Line::kVectorLanes;

// Polynomials are evaluated at 0, a, -a, b, -b and infinity. Of the points that f32 represents
// exactly, these give the smallest errors: half of those with a = 1, b = 2.
inline constexpr float kA = 0.625F, kB = 1.5F;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB, kA4 = kA2 * kA2, kB4 = kB2 * kB2;
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

inline constexpr float kPowersOfA[] = {1, 1, kA2, kA2, kA4};  // of a polynomial's terms
inline constexpr float kPowersOfB[] = {1, 1, kB2, kB2, kB4};

// The sum of every second term from `first` on, as a polynomial in `squared`, x^2.
template <int kTerms>
[[gnu::always_inline]] inline Vector half_polynomial(const Vector (&terms)[kTerms],
                                                     int first,
                                                     float squared) {
  int i = first + (kTerms - 1 - first) / 2 * 2;
  Vector sum = terms[i];
#pragma GCC unroll 2
  for (i -= 2; i >= first; i -= 2) sum = multiply_add(squared, sum, terms[i]);
  return sum;
}

// The values of a polynomial of kTerms at the points. For a filter they include the interpolation's
// factors.
template <int kTerms, bool kIsFilter>
struct ValuesLine {
  static constexpr int kFrom = kTerms, kTo = kWindow;
  static constexpr float kZeroFactor = kIsFilter ? kOfZero : 1;
  static constexpr float kFactorA = kIsFilter ? kOfA : 1, kFactorB = kIsFilter ? kOfB : 1;

  [[gnu::always_inline]] static void transform(const Vector (&terms)[kFrom], Vector (&p)[kTo]) {
    const Vector even_a = kFactorA * half_polynomial(terms, 0, kA2),
                 odd_a = kFactorA * kA * half_polynomial(terms, 1, kA2);
    const Vector even_b = kFactorB * half_polynomial(terms, 0, kB2),
                 odd_b = kFactorB * kB * half_polynomial(terms, 1, kB2);
    p[0] = kZeroFactor * terms[0];
    p[1] = even_a + odd_a, p[2] = even_a - odd_a;
    p[3] = even_b + odd_b, p[4] = even_b - odd_b;
    p[5] = terms[kTerms - 1];
  }
};
template <int kFilter>
using GradientLine = ValuesLine<kTile<kFilter>, false>;  // a row of A y: a tile of gradients
template <int kFilter>
using FilterLine = ValuesLine<kFilter, true>;  // a row of G g: a filter

// The transposed transform of ValuesLine.
template <int kTerms, bool kIsFilter>
struct TermsLine {
  using Values = ValuesLine<kTerms, kIsFilter>;
  static constexpr int kFrom = kWindow, kTo = kTerms;

  [[gnu::always_inline]] static void transform(const Vector (&p)[kFrom], Vector (&terms)[kTo]) {
    const Vector of_a[] = {Values::kFactorA * (p[1] + p[2]), Values::kFactorA * kA * (p[1] - p[2])};
    const Vector of_b[] = {Values::kFactorB * (p[3] + p[4]), Values::kFactorB * kB * (p[3] - p[4])};
    terms[0] = multiply_add(Values::kZeroFactor, p[0], of_a[0]) + of_b[0];
#pragma GCC unroll 4
    for (int i = 1; i < kTerms; ++i) {
      const Vector& b = of_b[i % 2];
      const Vector sum = i == kTerms - 1 ? multiply_add(kPowersOfB[i], b, p[5]) : kPowersOfB[i] * b;
      terms[i] = multiply_add(kPowersOfA[i], of_a[i % 2], sum);
    }
  }
};
template <int kFilter>
using OutputLine = TermsLine<kTile<kFilter>, false>;  // a row of A^T p: outputs
template <int kFilter>
using FilterGradientLine = TermsLine<kFilter, true>;  // a row of G^T p: the gradient of a filter

// Computes m x m^T, where Rows::transform() multiplies m by a column. load(i) returns element i of
// x and store(i, value) receives element i of the result, both in row-major order.
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

// body.operator()<kFilter>() for weights (K,C,3,3) or (K,C,5,5).
template <class Body>
void dispatch_filter(const Shape& weight, const Body& body) {
  return weight[2] == 3 ? body.template operator()<3>() : body.template operator()<5>();
}

}  // namespace lockstep::kernels::LS_CPU
#endif
