#include "tests/reference/cast.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/elementwise/copy.h"
#include "tests/support/close.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::cast_test {
namespace {

using reference::decode;
using reference::FloatFormat;
using testing::poisoned_tensor;
using testing::same_bits;

struct Type16 {
  Dtype dtype;
  FloatFormat format;
  uint32_t infinity;
};
constexpr Type16 kF16 = {Dtype::kF16, reference::kF16Format, 0x7c00};
constexpr Type16 kBF16 = {Dtype::kBF16, reference::kBF16Format, 0x7f80};

Tensor cast_to(Dtype dtype, const Tensor& src, int threads = 1) {
  Stream stream(Device::kCpu, threads);
  Tensor dst = poisoned_tensor(src.shape(), dtype);
  cast(stream, src, dst);
  return dst;
}

uint16_t bits_at(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == Dtype::kF16 ? tensor.data<Half>()[i].bits
                                       : tensor.data<BFloat16>()[i].bits;
}

// All 65536 bit patterns.
Tensor all_patterns(Dtype dtype) {
  Tensor tensor = Tensor::empty({65536}, dtype);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    std::memcpy(tensor.bytes() + size_t{2} * bits, &pattern, sizeof(pattern));
  }
  return tensor;
}

// What differs in value or in the sign of zero; NaNs are alike.
bool same_value(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

class CastTypes : public ::testing::TestWithParam<Type16> {};

TEST_P(CastTypes, EveryPatternWidensExactlyAndComesBack) {
  const auto& [dtype, format, infinity] = GetParam();
  const Tensor wide = cast_to(Dtype::kF32, all_patterns(dtype), 2);
  const Tensor back = cast_to(dtype, wide, 3);
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double value = decode(bits, format);
    const float got = wide.data<float>()[bits];
    wrong += static_cast<int>(!same_value(got, value));
    const uint16_t again = bits_at(back, bits);
    wrong +=
        static_cast<int>(std::isnan(value) ? !std::isnan(decode(again, format)) : again != bits);
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(CastTypes, TiesRoundToEvenAndTheirNeighborsToTheNearest) {
  const auto& [dtype, format, infinity] = GetParam();
  Tensor src = Tensor::empty({infinity, 6}, Dtype::kF32);
  float* x = src.data<float>();
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const double next = bits + 1 == infinity ? std::ldexp(1.0, format.max_exponent() + 1)
                                             : decode(bits + 1, format);
    const auto tie = static_cast<float>((decode(bits, format) + next) / 2);
    for (const float value : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, INFINITY)}) {
      *x++ = value;
      *x++ = -value;
    }
  }
  const Tensor got = cast_to(dtype, src);
  int wrong = 0;
  for (int64_t i = 0; i < src.numel(); ++i) {
    const double want = reference::round_to(src.data<float>()[i], format);
    wrong += static_cast<int>(!same_value(decode(bits_at(got, i), format), want));
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(CastTypes, SpecialValues) {
  const auto& [dtype, format, infinity] = GetParam();
  for (const float value : {0.0F,
                            INFINITY,
                            NAN,
                            std::bit_cast<float>(0x7f800001U),  // a signaling NaN, low payload
                            3.4028235e38F,
                            1e-45F,
                            1.17549421e-38F,
                            65504.0F,
                            65520.0F}) {
    for (const float x : {value, -value}) {
      Tensor src = Tensor::empty({1}, Dtype::kF32);
      *src.data<float>() = x;
      const double got = decode(bits_at(cast_to(dtype, src), 0), format);
      EXPECT_TRUE(same_value(got, reference::round_to(x, format))) << x << " gave " << got;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(SixteenBit,
                         CastTypes,
                         ::testing::Values(kF16, kBF16),
                         [](const auto& type) { return std::string(name_of(type.param.dtype)); });

TEST(Cast, BetweenSixteenBitTypesRoundsOnce) {
  const Tensor narrow = cast_to(Dtype::kF16, all_patterns(Dtype::kBF16));
  const Tensor brain = cast_to(Dtype::kBF16, all_patterns(Dtype::kF16));
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    wrong +=
        static_cast<int>(!same_value(decode(bits_at(narrow, bits), kF16.format),
                                     reference::round_to(decode(bits, kBF16.format), kF16.format)));
    wrong +=
        static_cast<int>(!same_value(decode(bits_at(brain, bits), kBF16.format),
                                     reference::round_to(decode(bits, kF16.format), kBF16.format)));
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Cast, InstructionSetsAndThreadsAgree) {
  constexpr Dtype kAll[] = {Dtype::kF32, Dtype::kF16, Dtype::kBF16};
  const Tensor values = testing::random_tensor({20021}, 1, -70000, 70000);
  for (const Dtype from : kAll) {
    const Tensor src = from == Dtype::kF32 ? values : cast_to(from, values);
    for (const Dtype to : kAll) {
      const Tensor want = cast_to(to, src);
      if (from == to) {
        EXPECT_TRUE(same_bits(want, src));
      }
      EXPECT_TRUE(same_bits(cast_to(to, src, 2), want));
      EXPECT_TRUE(same_bits(cast_to(to, src, 3), want));
      Stream stream;
      for (Cast* body : LS_ISA_BODIES(cast)) {
        Tensor got = poisoned_tensor(src.shape(), to);
        body(stream, src, got);
        EXPECT_TRUE(same_bits(got, want)) << name_of(from) << " to " << name_of(to);
      }
    }
  }
}

TEST(Cast, RejectsIntegersAndOtherShapes) {
  Stream stream;
  const Tensor src = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor dst = Tensor::zeros({3, 2}, Dtype::kF16);
  Tensor integers = Tensor::zeros({2, 3}, Dtype::kI32);
  EXPECT_THROW(cast(stream, src, integers), DtypeError);
  EXPECT_THROW(cast(stream, integers, dst), DtypeError);
  try {
    cast(stream, src, dst);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[cast] dst: shape (3,2), expected (2,3)");
  }
}

TEST(Cast, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor src = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  Tensor dst = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  cast(stream, src, dst);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 60);
}

}  // namespace
}  // namespace lockstep::kernels::cast_test
