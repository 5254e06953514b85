#include "kernels/random/fill_uniform.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/fill_uniform.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::fill_uniform_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::same_bits;
using testing::values_of;

constexpr FillUniformParams kUnit = {
    .seed = 0x123456789, .purpose = RandomPurpose::kSynthetic, .epoch = 7};

FillUniformParams between(float low, float high) {
  FillUniformParams params = kUnit;
  params.low = low;
  params.high = high;
  return params;
}

std::vector<double> reference_of(int64_t count, const FillUniformParams& p) {
  return reference::fill_uniform(
      static_cast<size_t>(count), p.seed, p.purpose, p.epoch, p.low, p.high);
}

Tensor filled(int64_t count, const FillUniformParams& params, Dtype dtype, int threads = 1) {
  Stream stream(Device::kCpu, threads);
  Tensor out = poisoned_tensor({count}, dtype);
  fill_uniform(stream, params, out);
  return out;
}

TEST(FillUniform, UnitIntervalIsTheReferenceBitForBitOnAnyNumberOfThreads) {
  for (const int64_t count : {0, 1, 3, 4, 17, 50021}) {
    const Tensor want = testing::tensor_of(reference_of(count, kUnit), {count}, Dtype::kF32);
    for (const int threads : {1, 2, 3}) {
      EXPECT_TRUE(same_bits(filled(count, kUnit, Dtype::kF32, threads), want)) << count;
    }
  }
}

TEST(FillUniform, OtherRangesAreCloseToTheReferenceInEveryType) {
  for (const Dtype dtype : kFloatTypes) {
    const double unit = std::ldexp(1.0, -testing::format_of(dtype).mantissa_bits);
    const FillUniformParams params = between(-0.25F, 3);
    const std::vector<double> got = values_of(filled(5003, params, dtype));
    const std::vector<double> want = reference_of(5003, params);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2 * unit) << i;
  }
}

TEST(FillUniform, StaysBelowHighWhereRoundingWouldReachIt) {
  constexpr uint32_t kLast = 0xffffffffU;
  for (const Dtype dtype : kFloatTypes) {
    const int mantissa = testing::format_of(dtype).mantissa_bits;
    const auto last = [&](float low, float high) {
      const float value = uniform_range(dtype, low, high).at(kLast);
      return reference::round_to(value, testing::format_of(dtype));
    };
    EXPECT_EQ(last(1, 2), 2 - std::ldexp(1.0, -mantissa));
    EXPECT_EQ(last(-2, -1), -1 - std::ldexp(1.0, -mantissa));
    EXPECT_LT(last(-1, 0), 0);
    EXPECT_LT(last(0, 1), 1);
    EXPECT_EQ(uniform_range(dtype, -3, 5).at(0), -3);
  }
  const std::vector<double> values = values_of(filled(50021, kUnit, Dtype::kBF16));
  EXPECT_EQ(*std::ranges::max_element(values), 1 - 0x1p-8);
}

TEST(FillUniform, MeanAndVarianceAreThoseOfTheInterval) {
  const std::vector<double> values = values_of(filled(50021, kUnit, Dtype::kF32));
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  double square = 0;
  for (const double value : values) {
    mean += value / count;
    square += value * value / count;
  }
  EXPECT_NEAR(mean, 0.5, 0.006);  // 4.6 standard deviations
  EXPECT_NEAR(square - mean * mean, 1.0 / 12, 0.002);
}

TEST(FillUniform, EveryCoordinateGivesOtherNumbers) {
  const Tensor first = filled(64, kUnit, Dtype::kF32);
  FillUniformParams other = kUnit;
  ++other.seed;
  EXPECT_FALSE(same_bits(filled(64, other, Dtype::kF32), first));
  other = kUnit;
  other.purpose = RandomPurpose::kAugment;
  EXPECT_FALSE(same_bits(filled(64, other, Dtype::kF32), first));
  other = kUnit;
  ++other.epoch;
  EXPECT_FALSE(same_bits(filled(64, other, Dtype::kF32), first));
  EXPECT_TRUE(same_bits(filled(100, kUnit, Dtype::kF32).slice(0, 64), first));
}

TEST(FillUniform, InstructionSetsAgree) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const Tensor want = filled(1003, between(-7, 0.3F), dtype);
    for (FillUniform* body : LS_ISA_BODIES(fill_uniform)) {
      Tensor got = poisoned_tensor({1003}, dtype);
      body(stream, between(-7, 0.3F), got);
      EXPECT_TRUE(same_bits(got, want)) << name_of(dtype);
    }
  }
}

TEST(FillUniform, RejectsBadArguments) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [low, high] : {std::pair{1.0F, 1.0F}, {2, 1}, {0, kInf}, {kNan, 1}, {0, kNan}}) {
    EXPECT_THROW(filled(1, between(low, high), Dtype::kF32), ShapeError) << low << " " << high;
  }
  EXPECT_THROW(filled(1, kUnit, Dtype::kI32), DtypeError);
  try {
    filled(1, between(0, 70000), Dtype::kF16);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[fill_uniform] required: low < high, finite in f16: got 0 and 70000");
  }
}

TEST(FillUniform, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor out = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  fill_uniform(stream, kUnit, out);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 20);
}

}  // namespace
}  // namespace lockstep::kernels::fill_uniform_test
