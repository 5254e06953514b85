#include "kernels/scale.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/cast.h"
#include "tests/reference/cast.h"
#include "tests/reference/scale.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels {
namespace {

using testing::close;
using testing::doubles;
using testing::random_tensor;
using testing::same_bits;

class ScaleSizes : public ::testing::TestWithParam<int64_t> {};

TEST_P(ScaleSizes, MatchesReference) {
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const float factor : {0.0F, 1.0F, -3.0F, 1.0F / 3}) {
      Tensor values = random_tensor({GetParam()}, 1);
      const std::vector<double> want = reference::scale(factor, doubles(values));
      scale(stream, factor, values);
      EXPECT_TRUE(close(values.span<const float>(), want, {.rel = 0x1p-24}))
          << factor << " on " << threads << " threads";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths, ScaleSizes, ::testing::Values(0, 1, 15, 16, 17, 16384, 50021));

TEST(Scale, PowersOfTwoComeBackExactly) {
  Stream stream;
  const Tensor original = random_tensor({1000}, 1);
  Tensor values = random_tensor({1000}, 1);
  scale(stream, 0.125F, values);
  EXPECT_FALSE(same_bits(values, original));
  scale(stream, 8, values);
  EXPECT_TRUE(same_bits(values, original));
}

TEST(Scale, SixteenBitProductsAreRounded) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const reference::FloatFormat& format =
        dtype == Dtype::kF16 ? reference::kF16Format : reference::kBF16Format;
    Tensor values = Tensor::empty({333}, dtype);
    cast(stream, random_tensor({333}, 1), values);
    Tensor before = Tensor::empty({333}, Dtype::kF32);
    cast(stream, values, before);
    scale(stream, 3, values);
    Tensor after = Tensor::empty({333}, Dtype::kF32);
    cast(stream, values, after);
    for (int64_t i = 0; i < after.numel(); ++i) {  // 3x is exact in f32: one rounding in all
      ASSERT_EQ(after.data<float>()[i], reference::round_to(3.0 * before.data<float>()[i], format));
    }
  }
}

TEST(Scale, NanAndInfinityFollowIeee) {
  Stream stream;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Tensor values = Tensor::empty({2}, Dtype::kF32);
  values.data<float>()[0] = kInf;
  values.data<float>()[1] = -1;
  scale(stream, 0, values);
  EXPECT_TRUE(std::isnan(values.data<float>()[0]));
  EXPECT_TRUE(std::signbit(values.data<float>()[1]));
  scale(stream, kInf, values);
  EXPECT_TRUE(std::isnan(values.data<float>()[1]));
}

TEST(Scale, InstructionSetsAgree) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    const auto scaled_by = [&](Scale* body) {
      Tensor values = Tensor::empty({1003}, dtype);
      cast(stream, random_tensor({1003}, 1, -70000, 70000), values);
      body(stream, 1.7F, values);
      return values;
    };
    for (Scale* body : testing::isa_bodies(cpu_v2::scale, cpu_v3::scale, cpu_v4::scale)) {
      EXPECT_TRUE(same_bits(scaled_by(body), scaled_by(scale))) << name_of(dtype);
    }
  }
}

TEST(Scale, RejectsIntegers) {
  Stream stream;
  Tensor values = Tensor::zeros({2}, Dtype::kI32);
  EXPECT_THROW(scale(stream, 1, values), DtypeError);
}

TEST(Scale, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor values = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  scale(stream, 2, values);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].op, "scale");
  EXPECT_EQ(stream.ledger()[0].bytes, 40);
}

}  // namespace
}  // namespace lockstep::kernels
