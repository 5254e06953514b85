#include "kernels/elementwise/add.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/add.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::add_test {
namespace {

using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

class AddSizes : public ::testing::TestWithParam<int64_t> {};

TEST_P(AddSizes, MatchesReference) {
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const Dtype dtype : kFloatTypes) {
      const Tensor src = rounded_to(dtype, random_tensor({GetParam()}, 1));
      Tensor dst = rounded_to(dtype, random_tensor({GetParam()}, 2));
      const std::vector<double> want = reference::add(values_of(src), values_of(dst));
      add(stream, src, dst);
      EXPECT_TRUE(same_bits(dst, tensor_of(want, dst.shape(), dtype)))
          << name_of(dtype) << ", " << threads << " threads";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths, AddSizes, ::testing::Values(0, 1, 15, 16, 17, 16384, 50021));

TEST(Add, SixteenBitSumsRoundOnce) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    Tensor src = Tensor::empty({1}, dtype);
    Tensor dst = Tensor::empty({1}, dtype);
    if (dtype == Dtype::kF16) {
      *src.data<Half>() = Half(0x1p-11F);  // half an ulp of 1: ties to even
      *dst.data<Half>() = Half(1.0F);
      add(stream, src, dst);
      EXPECT_EQ(static_cast<float>(*dst.data<Half>()), 1.0F);
    } else {
      *src.data<BFloat16>() = BFloat16(0x3p-9F);  // three quarters of an ulp of 1
      *dst.data<BFloat16>() = BFloat16(1.0F);
      add(stream, src, dst);
      EXPECT_EQ(static_cast<float>(*dst.data<BFloat16>()), 1.0F + 0x1p-7F);
    }
  }
}

// In a vector's lanes and in what is left over.
TEST(Add, NanInfinityAndDenormalsFollowIeeeOnEveryLevel) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kCases[][3] = {{kInf, -kInf, kNan},
                                  {kInf, 1, kInf},
                                  {kNan, 1, kNan},
                                  {-0.0, -0.0, -0.0},
                                  {0x1p-24, 0x1p-24, 0x1p-23},
                                  {0x3p-24, -0x1p-24, 0x1p-23}};
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    for (const auto& [x, y, sum] : kCases) {
      const auto all = [&](double value) {
        return tensor_of(std::vector<double>(37, value), {37}, dtype);
      };
      for (Add* body : LS_ISA_BODIES(add)) {
        Tensor dst = all(y);
        body(stream, all(x), dst);
        EXPECT_TRUE(testing::same_bits_or_nan(dst, all(sum))) << name_of(dtype) << " " << x;
      }
    }
  }
}

TEST(Add, InstructionSetsAgree) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const Tensor src = rounded_to(dtype, random_tensor({1003}, 1));
    const Tensor terms = rounded_to(dtype, random_tensor({1003}, 2));
    Tensor want = rounded_to(dtype, terms);
    add(stream, src, want);
    for (Add* body : LS_ISA_BODIES(add)) {
      Tensor dst = rounded_to(dtype, terms);
      body(stream, src, dst);
      EXPECT_TRUE(same_bits(dst, want)) << name_of(dtype);
    }
  }
}

TEST(Add, RejectsOtherShapes) {
  Stream stream;
  const Tensor src = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor dst = Tensor::zeros({3, 2}, Dtype::kF32);
  try {
    add(stream, src, dst);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[add] dst: shape (3,2), expected (2,3)");
  }
}

TEST(Add, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor src = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  Tensor dst = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  add(stream, src, dst);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].op, "add");
  EXPECT_EQ(stream.ledger()[0].bytes, 120);
}

}  // namespace
}  // namespace lockstep::kernels::add_test
