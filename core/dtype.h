// Element types, and the two 16-bit floats as storage types.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace lockstep {

enum class Dtype : uint8_t { kF32, kF16, kBF16, kU8, kI32, kI64 };

constexpr size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
    case Dtype::kI32:
      return 4;
    case Dtype::kF16:
    case Dtype::kBF16:
      return 2;
    case Dtype::kU8:
      return 1;
    case Dtype::kI64:
      return 8;
  }
  return 0;
}

constexpr std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return "f32";
    case Dtype::kF16:
      return "f16";
    case Dtype::kBF16:
      return "bf16";
    case Dtype::kU8:
      return "u8";
    case Dtype::kI32:
      return "i32";
    case Dtype::kI64:
      return "i64";
  }
  return "?";
}

// IEEE 754 binary16 in memory. Conversion from float rounds to nearest, ties to even; overflow
// gives infinity, NaN stays NaN (quiet), denormals are kept.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit constexpr Half(float value) : bits(from_float(value)) {}
  explicit constexpr operator float() const { return to_float(bits); }

 private:
  static constexpr uint16_t from_float(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (f >> 16) & 0x8000U;
    const uint32_t magnitude = f & 0x7fffffffU;
    if (magnitude > 0x7f800000U)
      return static_cast<uint16_t>(sign | 0x7e00U | ((f >> 13) & 0x1ffU));
    if (magnitude >= 0x477ff000U)
      return static_cast<uint16_t>(sign | 0x7c00U);  // rounds above 65504
    if (magnitude < 0x38800000U) {                   // below 2^-14: a multiple of 2^-24
      const float scaled = std::bit_cast<float>(magnitude) + 0.5F;  // ulp of [0.5, 1) is 2^-24
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000U));
    }
    const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
  }
  static constexpr float to_float(uint16_t h) {
    const uint32_t sign = (h & 0x8000U) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fU;
    const uint32_t mantissa = h & 0x3ffU;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  }
};

// The upper half of a float. Conversion rounds to nearest, ties to even; NaN stays NaN (quiet).
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit constexpr BFloat16(float value) : bits(from_float(value)) {}
  explicit constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

 private:
  static constexpr uint16_t from_float(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    if ((f & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((f >> 16) | 0x40U);
    return static_cast<uint16_t>((f + 0x7fffU + ((f >> 16) & 1U)) >> 16);
  }
};

// A float that rounds to 16 bits as `value` itself does: inexact values become the neighbor with
// an odd last bit, never a tie. Source: Boldo and Melquiond, "When double rounding is odd", 2005.
[[gnu::always_inline]] inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const double rounded = nearest;
  if (rounded == value || value != value) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  const bool away = value > 0 ? rounded > value : rounded < value;
  if (away) --bits;
  return std::bit_cast<float>(bits | 1U);
}

template <class T>
struct DtypeOf;
template <class T>
struct DtypeOf<const T> : DtypeOf<T> {};
template <>
struct DtypeOf<float> {
  static constexpr Dtype kValue = Dtype::kF32;
};
template <>
struct DtypeOf<Half> {
  static constexpr Dtype kValue = Dtype::kF16;
};
template <>
struct DtypeOf<BFloat16> {
  static constexpr Dtype kValue = Dtype::kBF16;
};
template <>
struct DtypeOf<uint8_t> {
  static constexpr Dtype kValue = Dtype::kU8;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr Dtype kValue = Dtype::kI32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr Dtype kValue = Dtype::kI64;
};

}  // namespace lockstep
#pragma GCC visibility pop
