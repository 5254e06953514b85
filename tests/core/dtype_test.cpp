#include "core/dtype.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace lockstep::dtype_test {
namespace {

using testing::GoldenCase;

constexpr float kInf = std::numeric_limits<float>::infinity();

// The value of binary16 bits, from their definition.
double half_value(uint32_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((bits >> 10) & 31U);
  const double mantissa = bits & 0x3ffU;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const auto value = static_cast<float>(half);
    if (std::isnan(half_value(bits))) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(Half(value).bits, bits | 0x200U) << "a NaN keeps its payload and becomes quiet";
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), half_value(bits)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000U) != 0) << bits;
    ASSERT_EQ(Half(value).bits, bits);
  }
}

// Between neighbors: the middle goes to the even one, any other value to the nearer.
TEST(Half, RoundsToNearestTiesToEven) {
  for (uint32_t low = 0; low < 0x7c00; ++low) {
    const double below = half_value(low);
    const double above = low == 0x7bff ? 65536 : half_value(low + 1);
    const auto middle = static_cast<float>((below + above) / 2);
    const uint32_t even = low + (low & 1U);
    ASSERT_EQ(Half(middle).bits, even) << low;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0F)).bits, low) << low;
    ASSERT_EQ(Half(std::nextafter(middle, kInf)).bits, low + 1) << low;
    ASSERT_EQ(Half(-middle).bits, even | 0x8000U) << low;
  }
}

TEST(Half, WhatIsTooLargeIsInfinite) {
  for (const float huge : {65520.0F, 65536.0F, 1e10F, std::numeric_limits<float>::max(), kInf}) {
    EXPECT_EQ(Half(huge).bits, 0x7c00);
    EXPECT_EQ(Half(-huge).bits, 0xfc00);
  }
  EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(BFloat16, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    BFloat16 value;
    value.bits = static_cast<uint16_t>(bits);
    const auto f = static_cast<float>(value);
    ASSERT_EQ(std::bit_cast<uint32_t>(f), bits << 16);
    ASSERT_EQ(BFloat16(f).bits, std::isnan(f) ? bits | 0x40U : bits);
  }
}

TEST(BFloat16, RoundsToNearestTiesToEven) {
  for (uint32_t low = 0; low < 0x7f80; ++low) {
    const uint32_t middle = (low << 16) | 0x8000U;
    ASSERT_EQ(BFloat16(std::bit_cast<float>(middle)).bits, low + (low & 1U)) << low;
    ASSERT_EQ(BFloat16(std::bit_cast<float>(middle - 1)).bits, low) << low;
    ASSERT_EQ(BFloat16(std::bit_cast<float>(middle + 1)).bits, low + 1) << low;
    ASSERT_EQ(BFloat16(-std::bit_cast<float>(middle + 1)).bits, (low + 1) | 0x8000U) << low;
  }
}

TEST(BFloat16, ANanWithLowBitsOnlyStaysANan) {
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(Dtype, ConvertsAsPyTorch) {
  const GoldenCase golden = testing::golden_cases("cast").at(0);
  const Tensor input = golden.tensor("input");
  const Tensor f16 = golden.tensor("f16_bits");
  const Tensor bf16 = golden.tensor("bf16_bits");
  for (int64_t i = 0; i < input.numel(); ++i) {
    const float value = input.data<float>()[i];
    if (std::isnan(value)) continue;  // which NaN is left open
    EXPECT_EQ(Half(value).bits, f16.data<int32_t>()[i]) << value;
    EXPECT_EQ(BFloat16(value).bits, bf16.data<int32_t>()[i]) << value;
  }
}

TEST(Dtype, SizesAreThoseOfTheElements) {
  EXPECT_EQ(size_of(DtypeOf<float>::kValue), sizeof(float));
  EXPECT_EQ(size_of(DtypeOf<Half>::kValue), sizeof(Half));
  EXPECT_EQ(size_of(DtypeOf<BFloat16>::kValue), sizeof(BFloat16));
  EXPECT_EQ(size_of(DtypeOf<uint8_t>::kValue), sizeof(uint8_t));
  EXPECT_EQ(size_of(DtypeOf<int32_t>::kValue), sizeof(int32_t));
  EXPECT_EQ(size_of(DtypeOf<const int64_t>::kValue), sizeof(int64_t));
}

}  // namespace
}  // namespace lockstep::dtype_test
