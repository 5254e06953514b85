// Specification of kernels/elementwise/copy.h: the values of binary float formats, by arithmetic on
// double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep::reference {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;  // stored bits, without the implicit one

  int max_exponent() const { return (1 << (exponent_bits - 1)) - 1; }
  int min_exponent() const { return 1 - max_exponent(); }  // of normal numbers
};
inline constexpr FloatFormat kF32Format = {8, 23};
inline constexpr FloatFormat kF16Format = {5, 10};
inline constexpr FloatFormat kBF16Format = {8, 7};

// The value that `bits` represents.
inline double decode(uint32_t bits, const FloatFormat& format) {
  const int exponent_mask = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & exponent_mask;
  const auto mantissa = static_cast<double>(bits & ((1U << format.mantissa_bits) - 1));
  const bool negative = ((bits >> (format.exponent_bits + format.mantissa_bits)) & 1U) != 0;
  double magnitude = 0;
  if (exponent == exponent_mask) {
    magnitude = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, format.min_exponent() - format.mantissa_bits);
  } else {
    magnitude = std::ldexp(1 + std::ldexp(mantissa, -format.mantissa_bits),
                           exponent - format.max_exponent());
  }
  return negative ? -magnitude : magnitude;
}

// The nearest value of `format`, ties to even. Requires: the default rounding mode.
inline double round_to(double value, const FloatFormat& format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent());
  const double spacing = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = std::nearbyint(value / spacing) * spacing;
  if (std::abs(rounded) < std::ldexp(1.0, format.max_exponent() + 1)) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace lockstep::reference
