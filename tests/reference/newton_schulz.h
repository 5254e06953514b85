// Specification of nn::orthogonalize in double, by loops over a row-major matrix.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/reference/cast.h"

namespace lockstep::reference {

using Rows = std::vector<std::vector<double>>;

inline Rows product(const Rows& a, const Rows& b) {
  Rows out(a.size(), std::vector<double>(b.front().size(), 0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b.front().size(); ++j) out[i][j] += a[i][k] * b[k][j];
    }
  }
  return out;
}

inline Rows transposed(const Rows& a) {
  Rows out(a.front().size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) out[j][i] = a[i][j];
  }
  return out;
}

inline constexpr FloatFormat kUnrounded = {11, 52};  // the format of double

inline Rows rounded(Rows a, const FloatFormat& format) {
  for (auto& row : a) {
    for (double& value : row) value = round_to(value, format);
  }
  return a;
}

// The factors and the results of products are rounded to `products`.
inline Rows orthogonalize(Rows x, double scale, const FloatFormat& products = kUnrounded) {
  if (x.size() > x.front().size()) {
    return transposed(orthogonalize(transposed(x), scale, products));
  }
  const auto multiply = [&](const Rows& a, const Rows& b) {
    return rounded(product(rounded(a, products), rounded(b, products)), products);
  };
  for (int step = 0; step < 5; ++step) {
    const Rows a = multiply(x, transposed(x));
    const Rows squared = multiply(a, a);
    Rows b = a;
    for (size_t i = 0; i < a.size(); ++i) {
      for (size_t j = 0; j < a.size(); ++j) b[i][j] = -4.7750 * a[i][j] + 2.0315 * squared[i][j];
    }
    const Rows moved = multiply(b, x);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[i].size(); ++j) x[i][j] = 3.4445 * x[i][j] + moved[i][j];
    }
  }
  for (auto& row : x) {
    for (double& value : row) value *= scale;
  }
  return x;
}

}  // namespace lockstep::reference
