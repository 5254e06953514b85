#include "kernels/add.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/add.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels {
namespace {

using testing::close;
using testing::doubles;
using testing::random_tensor;

class AddSizes : public ::testing::TestWithParam<int64_t> {};

TEST_P(AddSizes, MatchesReference) {
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    const Tensor src = random_tensor({GetParam()}, 1);
    Tensor dst = random_tensor({GetParam()}, 2);
    const std::vector<double> want = reference::add(doubles(src), doubles(dst));
    add(stream, src, dst);
    EXPECT_TRUE(close(dst.span<const float>(), want, {.rel = 0x1p-24})) << threads << " threads";
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

TEST(Add, NanAndInfinityFollowIeee) {
  Stream stream;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Tensor src = Tensor::empty({2}, Dtype::kF32);
  Tensor dst = Tensor::empty({2}, Dtype::kF32);
  src.data<float>()[0] = kInf;
  dst.data<float>()[0] = -kInf;
  src.data<float>()[1] = kInf;
  dst.data<float>()[1] = 1;
  add(stream, src, dst);
  EXPECT_TRUE(std::isnan(dst.data<float>()[0]));
  EXPECT_EQ(dst.data<float>()[1], kInf);
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
}  // namespace lockstep::kernels
