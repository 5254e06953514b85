#include "kernels/elementwise/scale.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/scale.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::scale_test {
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
  Tensor want = random_tensor({1003}, 1);
  scale(stream, 1.7F, want);
  for (Scale* body : LS_ISA_BODIES(scale)) {
    Tensor values = random_tensor({1003}, 1);
    body(stream, 1.7F, values);
    EXPECT_TRUE(same_bits(values, want));
  }
}

TEST(Scale, RejectsOtherDtypes) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kI32, Dtype::kF16}) {
    Tensor values = Tensor::zeros({2}, dtype);
    EXPECT_THROW(scale(stream, 1, values), DtypeError);
  }
}

TEST(Scale, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor values = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  scale(stream, 2, values);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].op, "scale");
  EXPECT_EQ(stream.ledger()[0].bytes, 80);
}

}  // namespace
}  // namespace lockstep::kernels::scale_test
