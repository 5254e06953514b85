#include "kernels/random/dropout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/reference/dropout.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::dropout_test {
namespace {

using testing::close;
using testing::doubles;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

constexpr DropoutParams kParams = {.p = 0.3, .seed = 0x123456789, .layer = 2};

DropoutParams with_p(double p) {
  DropoutParams params = kParams;
  params.p = p;
  return params;
}

Tensor image_numbers(const std::vector<int64_t>& numbers) {
  Tensor tensor = Tensor::empty({static_cast<int64_t>(numbers.size())}, Dtype::kI64);
  std::ranges::copy(numbers, tensor.data<int64_t>());
  return tensor;
}

Tensor dropped(const Tensor& in,
               const Tensor& images,
               const DropoutParams& params = kParams,
               int threads = 1) {
  Stream stream(Device::kCpu, threads);
  Tensor out = poisoned_tensor(in.shape(), in.dtype());
  dropout_forward(stream, in, images, params, out);
  return out;
}

class DropoutShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(DropoutShapes, MatchesReferenceInBothDirections) {
  std::vector<int64_t> numbers = {5, 0, int64_t{3} << 32, 77, 6};
  numbers.resize(static_cast<size_t>(GetParam()[0]));
  const Tensor images = image_numbers(numbers);
  const Tensor in = random_tensor(GetParam(), 1);
  for (const double p : {0.1, 0.5, 0.999}) {
    const std::vector<double> want =
        reference::dropout(doubles(in), numbers, p, kParams.seed, kParams.layer);
    for (const int threads : {1, 3}) {
      const Tensor out = dropped(in, images, with_p(p), threads);
      EXPECT_TRUE(close(out.span<const float>(), want, {.rel = 0x1p-22})) << threads << " threads";
      Stream stream(Device::kCpu, threads);
      Tensor grad_in = poisoned_tensor(in.shape(), Dtype::kF32);
      dropout_backward(stream, in, images, with_p(p), grad_in);
      EXPECT_TRUE(same_bits(grad_in, out));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         DropoutShapes,
                         ::testing::Values(Shape{0, 7},
                                           Shape{3, 0},
                                           Shape{1, 1},
                                           Shape{5, 3},
                                           Shape{3, 17},
                                           Shape{2, 64},
                                           Shape{5},
                                           Shape{5, 4096},
                                           Shape{3, 5, 7, 2}));

TEST(Dropout, SixteenBitProductsRoundOnce) {
  const std::vector<int64_t> numbers = {4, 9};
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const Tensor in = rounded_to(dtype, random_tensor({2, 50}, 1));
    const auto scale = static_cast<double>(static_cast<float>(1 / 0.7));
    const std::vector<double> ones(100, 1);
    std::vector<double> want =
        reference::dropout(ones, numbers, kParams.p, kParams.seed, kParams.layer);
    const std::vector<double> values = values_of(in);
    for (size_t i = 0; i < want.size(); ++i) want[i] = values[i] * (want[i] > 0 ? scale : 0);
    EXPECT_TRUE(same_bits(dropped(in, image_numbers(numbers)),
                          testing::tensor_of(want, in.shape(), dtype)));
  }
}

TEST(Dropout, KeepsTheShareAndTheMean) {
  const Tensor ones = rounded_to(Dtype::kF32, random_tensor({4, 25000}, 1, 1, 1));
  for (const double p : {0.1, 0.5, 0.8}) {
    const std::vector<double> out = doubles(dropped(ones, image_numbers({1, 2, 3, 4}), with_p(p)));
    double kept = 0;
    double sum = 0;
    for (const double value : out) {
      kept += value > 0 ? 1 : 0;
      sum += value;
    }
    EXPECT_NEAR(kept / 100000, 1 - p, 0.0075) << p;  // 4.7 standard deviations at 0.5
    EXPECT_NEAR(sum / 100000, 1, 0.0075 / (1 - p)) << p;
  }
}

TEST(Dropout, AtZeroItIsTheIdentityAndAtOneZero) {
  const Tensor images = image_numbers({1, 2});
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor({2, 37}, 1));
    EXPECT_TRUE(same_bits(dropped(in, images, with_p(0)), in));
    for (const double value : values_of(dropped(in, images, with_p(1)))) EXPECT_EQ(value, 0);
  }
  EXPECT_NE(doubles(dropped(random_tensor({1, 1}, 1), image_numbers({1}), with_p(0x1p-40)))[0], 0);
}

TEST(Dropout, AnImageKeepsItsMaskWhereverItIs) {
  const Tensor in = random_tensor({6, 33}, 1);
  const std::vector<int64_t> numbers = {11, 5, 8, 2, 40, 7};
  const Tensor whole = dropped(in, image_numbers(numbers));
  for (int64_t n = 0; n < 6; ++n) {
    const Tensor alone =
        dropped(in.slice(n, 1), image_numbers({numbers[static_cast<size_t>(n)]}), kParams);
    EXPECT_TRUE(same_bits(alone, whole.slice(n, 1))) << n;
  }
}

TEST(Dropout, EveryCoordinateGivesAnotherMask) {
  const Tensor in = random_tensor({1, 200}, 1);
  const Tensor first = dropped(in, image_numbers({1}));
  EXPECT_TRUE(same_bits(dropped(in, image_numbers({1})), first));
  EXPECT_FALSE(same_bits(dropped(in, image_numbers({2})), first));
  DropoutParams other = kParams;
  ++other.seed;
  EXPECT_FALSE(same_bits(dropped(in, image_numbers({1}), other), first));
  other = kParams;
  ++other.layer;
  EXPECT_FALSE(same_bits(dropped(in, image_numbers({1}), other), first));
}

TEST(Dropout, DroppedNanAndInfinityGiveNanAndZerosKeepTheirSign) {
  const Tensor in =
      testing::tensor_of(std::vector<double>{NAN, INFINITY, -1, -0.0}, {1, 4}, Dtype::kF32);
  const std::vector<double> out = doubles(dropped(in, image_numbers({1}), with_p(1)));
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_TRUE(out[2] == 0 && std::signbit(out[2]));
  EXPECT_TRUE(out[3] == 0 && std::signbit(out[3]));
}

TEST(Dropout, MayBeInPlace) {
  Stream stream;
  const Tensor images = image_numbers({1, 2, 3});
  Tensor values = random_tensor({3, 45}, 1);
  const Tensor want = dropped(values, images);
  dropout_forward(stream, values, images, kParams, values);
  EXPECT_TRUE(same_bits(values, want));
}

TEST(Dropout, InstructionSetsAgree) {
  Stream stream;
  const Tensor images = image_numbers({1, 2, 3});
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor({3, 333}, 1));
    const Tensor want = dropped(in, images);
    Tensor got = poisoned_tensor(in.shape(), dtype);
    for (DropoutForward* body : LS_ISA_BODIES(dropout_forward)) {
      body(stream, in, images, kParams, got);
      EXPECT_TRUE(same_bits(got, want));
    }
    for (DropoutBackward* body : LS_ISA_BODIES(dropout_backward)) {
      body(stream, in, images, kParams, got);
      EXPECT_TRUE(same_bits(got, want));
    }
  }
}

TEST(Dropout, RejectsBadArguments) {
  const Tensor in = random_tensor({2, 3}, 1);
  const Tensor images = image_numbers({1, 2});
  EXPECT_THROW(dropped(in, image_numbers({1})), ShapeError);
  EXPECT_THROW(dropped(in, in.slice(0, 2)), DtypeError);
  EXPECT_THROW(dropped(Tensor::zeros({2, 3}, Dtype::kI32), images), DtypeError);
  for (const double p : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(dropped(in, images, with_p(p)), ShapeError) << p;
  }
  Stream dry(Device::kDry);
  const Shape large = {1, (int64_t{1} << 26) + 1};
  const Tensor many = Tensor::empty(large, Dtype::kF32, Device::kDry);
  Tensor out = Tensor::empty(large, Dtype::kF32, Device::kDry);
  try {
    dropout_forward(dry, many, Tensor::empty({1}, Dtype::kI64, Device::kDry), kParams, out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[dropout_forward] required: at most 2^26 elements per image");
  }
}

TEST(Dropout, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor in = Tensor::empty({2, 5}, Dtype::kF16, Device::kDry);
  const Tensor images = Tensor::empty({2}, Dtype::kI64, Device::kDry);
  Tensor out = Tensor::empty({2, 5}, Dtype::kF16, Device::kDry);
  dropout_forward(stream, in, images, kParams, out);
  dropout_backward(stream, in, images, kParams, out);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 56);
  EXPECT_EQ(stream.ledger()[1].op, "dropout_backward");
}

}  // namespace
}  // namespace lockstep::kernels::dropout_test
