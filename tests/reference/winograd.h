// Specification of kernels/conv/winograd.h in double. Arrays are as in tests/reference/conv2d.h.
#pragma once

#include <vector>

#include "tests/reference/cast.h"
#include "tests/reference/conv2d.h"

namespace lockstep::reference {

// The matrices of F(2x2,3x3), as tables of rows.
using WinogradTable = std::vector<std::vector<double>>;
inline const WinogradTable kOfWindow = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
inline const WinogradTable kOfFilter = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
inline const WinogradTable kToOutputs = {{1, 1, 1, 0}, {0, 1, -1, -1}};

inline WinogradTable transposed(const WinogradTable& m) {
  WinogradTable t(m[0].size(), std::vector<double>(m.size()));
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t j = 0; j < m[0].size(); ++j) t[j][i] = m[i][j];
  return t;
}

// m x m^T for square matrices x in row-major order.
inline std::vector<double> transformed(const WinogradTable& m, const std::vector<double>& x) {
  const size_t rows = m.size(), columns = m[0].size();
  std::vector<double> result(rows * rows);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < rows; ++j)
      for (size_t a = 0; a < columns; ++a)
        for (size_t b = 0; b < columns; ++b)
          result[i * rows + j] += m[i][a] * x[a * columns + b] * m[j][b];
  return result;
}

// Whether the factors of the products are rounded to bf16.
enum class WinogradProducts { kOfBf16, kExact };

inline std::vector<double> factors(const WinogradTable& m,
                                   const std::vector<double>& x,
                                   WinogradProducts products) {
  std::vector<double> points = transformed(m, x);
  if (products == WinogradProducts::kExact) return points;
  for (double& point : points) point = round_to(point, kBF16Format);
  return points;
}

// The `edge` x `edge` values of channel c with the top left corner (y, x); 0 outside the image.
inline std::vector<double> patch(const std::vector<double>& images,
                                 const Conv2dSizes& z,
                                 int64_t channels,
                                 int64_t c,
                                 int64_t n,
                                 int64_t y,
                                 int64_t x,
                                 int64_t edge) {
  std::vector<double> values;
  for (int64_t i = y; i < y + edge; ++i) {
    for (int64_t j = x; j < x + edge; ++j) {
      const bool inside = i >= 0 && i < z.h && j >= 0 && j < z.w;
      const int64_t place = ((n * z.h + i) * z.w + j) * channels + c;
      values.push_back(inside ? images[static_cast<size_t>(place)] : 0);
    }
  }
  return values;
}

// The taps from input c to output k; rotated by 180 degrees for backward data.
inline std::vector<double> filter(
    const std::vector<double>& weight, const Conv2dSizes& z, int64_t k, int64_t c, bool turned) {
  std::vector<double> taps;
  for (int64_t tap = 0; tap < 9; ++tap) {
    taps.push_back(weight[static_cast<size_t>((k * 9 + (turned ? 8 - tap : tap)) * z.c + c)]);
  }
  return taps;
}

template <class Visit>
void for_each_tile(const Conv2dSizes& z, Visit&& visit) {
  for (int64_t n = 0; n < z.n; ++n)
    for (int64_t y = 0; y < z.h; y += 2)
      for (int64_t x = 0; x < z.w; x += 2) visit(n, y, x);
}

// Convolves `inputs` channels to `outputs` channels; filter_of(output, input) gives 9 taps.
template <class FilterOf>
std::vector<double> winograd_convolve(const std::vector<double>& in,
                                      const Conv2dSizes& z,
                                      int64_t inputs,
                                      int64_t outputs,
                                      const FilterOf& filter_of,
                                      WinogradProducts products) {
  std::vector<double> out(static_cast<size_t>(z.n * z.h * z.w * outputs));
  std::vector<std::vector<double>> filters;
  for (int64_t k = 0; k < outputs; ++k)
    for (int64_t c = 0; c < inputs; ++c)
      filters.push_back(factors(kOfFilter, filter_of(k, c), products));
  for_each_tile(z, [&](int64_t n, int64_t y, int64_t x) {
    std::vector<std::vector<double>> windows;
    for (int64_t c = 0; c < inputs; ++c)
      windows.push_back(factors(kOfWindow, patch(in, z, inputs, c, n, y - 1, x - 1, 4), products));
    for (int64_t k = 0; k < outputs; ++k) {
      std::vector<double> sums(16);
      for (int64_t c = 0; c < inputs; ++c)
        for (size_t i = 0; i < 16; ++i)
          sums[i] +=
              filters[static_cast<size_t>(k * inputs + c)][i] * windows[static_cast<size_t>(c)][i];
      const std::vector<double> tile = transformed(kToOutputs, sums);
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t oy = y + i / 2, ox = x + i % 2;
        if (oy >= z.h || ox >= z.w) continue;
        out[static_cast<size_t>(((n * z.h + oy) * z.w + ox) * outputs + k)] =
            tile[static_cast<size_t>(i)];
      }
    }
  });
  return out;
}

// Without a bias.
inline std::vector<double> winograd_forward(const std::vector<double>& in,
                                            const std::vector<double>& weight,
                                            const Conv2dSizes& z,
                                            WinogradProducts products) {
  return winograd_convolve(
      in,
      z,
      z.c,
      z.k,
      [&](int64_t k, int64_t c) { return filter(weight, z, k, c, false); },
      products);
}

inline std::vector<double> winograd_backward_data(const std::vector<double>& grad_out,
                                                  const std::vector<double>& weight,
                                                  const Conv2dSizes& z,
                                                  WinogradProducts products) {
  return winograd_convolve(
      grad_out,
      z,
      z.k,
      z.c,
      [&](int64_t c, int64_t k) { return filter(weight, z, k, c, true); },
      products);
}

inline std::vector<double> winograd_backward_weight(const std::vector<double>& in,
                                                    const std::vector<double>& grad_out,
                                                    const Conv2dSizes& z,
                                                    WinogradProducts products) {
  std::vector<std::vector<double>> sums(static_cast<size_t>(z.k * z.c), std::vector<double>(16));
  for_each_tile(z, [&](int64_t n, int64_t y, int64_t x) {
    std::vector<std::vector<double>> windows;
    for (int64_t c = 0; c < z.c; ++c)
      windows.push_back(factors(kOfWindow, patch(in, z, z.c, c, n, y - 1, x - 1, 4), products));
    for (int64_t k = 0; k < z.k; ++k) {
      const std::vector<double> tile =
          factors(transposed(kToOutputs), patch(grad_out, z, z.k, k, n, y, x, 2), products);
      for (int64_t c = 0; c < z.c; ++c)
        for (size_t i = 0; i < 16; ++i)
          sums[static_cast<size_t>(k * z.c + c)][i] += tile[i] * windows[static_cast<size_t>(c)][i];
    }
  });
  std::vector<double> grad_weight(static_cast<size_t>(z.k * 9 * z.c));
  for (int64_t k = 0; k < z.k; ++k) {
    for (int64_t c = 0; c < z.c; ++c) {
      const std::vector<double> taps =
          transformed(transposed(kOfFilter), sums[static_cast<size_t>(k * z.c + c)]);
      for (int64_t tap = 0; tap < 9; ++tap)
        grad_weight[static_cast<size_t>((k * 9 + tap) * z.c + c)] = taps[static_cast<size_t>(tap)];
    }
  }
  return grad_weight;
}

}  // namespace lockstep::reference
