#include "tests/reference/adaptive_avg_pool2d.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/pool/avg_pool2d.h"
#include "tests/support/adaptive_pool_case.h"
#include "tests/support/close_sum.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::adaptive_avg_pool2d_test {
namespace {

using testing::AdaptivePoolCase;
using testing::close;
using testing::close_sum;
using testing::floats_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

class AdaptiveAvgPool2d : public ::testing::TestWithParam<reference::AdaptivePoolSizes> {};

TEST_P(AdaptiveAvgPool2d, MatchesReferenceOnAnyNumberOfThreads) {
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const AdaptivePoolCase pool(GetParam(), dtype);
    const auto want = reference::adaptive_avg_pool2d_forward(values_of(pool.in), pool.sizes);
    const auto want_grad =
        reference::adaptive_avg_pool2d_backward(values_of(pool.grad_out), pool.sizes);
    Tensor first_out;
    Tensor first_grad;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      Tensor out = poisoned_tensor(pool.grad_out.shape(), dtype);
      Tensor grad_in = poisoned_tensor(pool.in.shape(), dtype);
      adaptive_avg_pool2d_forward(stream, pool.shards, pool.in, out);
      adaptive_avg_pool2d_backward(stream, pool.shards, pool.grad_out, grad_in);
      EXPECT_TRUE(close_sum(out, want, pool.terms()));
      EXPECT_TRUE(close_sum(grad_in, want_grad, pool.terms()));
      if (threads == 1) {
        first_out = out;
        first_grad = grad_in;
      }
      EXPECT_TRUE(same_bits(out, first_out)) << threads << " threads";
      EXPECT_TRUE(same_bits(grad_in, first_grad)) << threads << " threads";
    }
  }
}

TEST_P(AdaptiveAvgPool2d, SixteenBitsAreF32Rounded) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const AdaptivePoolCase pool(GetParam(), dtype);
    const auto run = [&](Dtype type) {
      Tensor out = poisoned_tensor(pool.grad_out.shape(), type);
      Tensor grad_in = poisoned_tensor(pool.in.shape(), type);
      adaptive_avg_pool2d_forward(stream, pool.shards, rounded_to(type, pool.in), out);
      adaptive_avg_pool2d_backward(stream, pool.shards, rounded_to(type, pool.grad_out), grad_in);
      return std::pair(out, grad_in);
    };
    const auto [out, grad_in] = run(dtype);
    const auto [want, want_grad] = run(Dtype::kF32);
    EXPECT_TRUE(same_bits(out, rounded_to(dtype, want)));
    EXPECT_TRUE(same_bits(grad_in, rounded_to(dtype, want_grad)));
  }
}

TEST_P(AdaptiveAvgPool2d, InstructionSetsAgree) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const AdaptivePoolCase pool(GetParam(), dtype);
    Tensor want = poisoned_tensor(pool.grad_out.shape(), dtype);
    Tensor want_grad = poisoned_tensor(pool.in.shape(), dtype);
    adaptive_avg_pool2d_forward(stream, pool.shards, pool.in, want);
    adaptive_avg_pool2d_backward(stream, pool.shards, pool.grad_out, want_grad);
    for (AvgPool2dForward* body : LS_ISA_BODIES(adaptive_avg_pool2d_forward)) {
      Tensor got = poisoned_tensor(want.shape(), dtype);
      body(stream, pool.shards, pool.in, got);
      EXPECT_TRUE(same_bits(got, want));
    }
    for (AvgPool2dBackward* body : LS_ISA_BODIES(adaptive_avg_pool2d_backward)) {
      Tensor got = poisoned_tensor(want_grad.shape(), dtype);
      body(stream, pool.shards, pool.grad_out, got);
      EXPECT_TRUE(same_bits(got, want_grad));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, AdaptiveAvgPool2d, ::testing::ValuesIn(testing::kAdaptivePools));

TEST(AdaptiveAvgPool2dReference, GradientIsTheDerivative) {
  const reference::AdaptivePoolSizes sizes{1, 2, 5, 3, 3, 4};
  const std::vector<double> in = testing::doubles(testing::random_tensor({1, 2, 5, 3}, 3));
  const std::vector<double> weights = testing::doubles(testing::random_tensor({1, 2, 3, 4}, 4));
  const auto f = [&](const std::vector<double>& x) {
    const auto out = reference::adaptive_avg_pool2d_forward(x, sizes);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
    return sum;
  };
  const auto gradient = reference::adaptive_avg_pool2d_backward(weights, sizes);
  const auto numerical = testing::numerical_gradient(f, in);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(gradient[i], numerical[i], 1e-8) << i;
}

// Five rows in two: 0 to 2 and 2 to 4.
TEST(AdaptiveAvgPool2dSpecial, NanAndInfinityReachTheirWindows) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    Tensor in = Tensor::zeros({2, 3, 5, 1}, dtype);
    testing::set(in, 15 + 2 * 3 + 1, std::numeric_limits<double>::quiet_NaN());
    testing::set(in, 15 + 4 * 3 + 2, std::numeric_limits<double>::infinity());
    Tensor out = poisoned_tensor({2, 3, 2, 1}, dtype);
    adaptive_avg_pool2d_forward(stream, Shards::single(2), in, out);
    std::vector<double> want(12, 0);
    want[6 + 1] = want[9 + 1] = std::numeric_limits<double>::quiet_NaN();
    want[9 + 2] = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(close(floats_of(out), want, {})) << name_of(dtype);
  }
}

TEST(AdaptiveAvgPool2dSpecial, RejectsOtherShapes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = Tensor::zeros({2, 3, 4, 4}, Dtype::kF32);
  Tensor out = Tensor::zeros({2, 3, 2, 2}, Dtype::kF32);
  Tensor other_channels = Tensor::zeros({2, 4, 2, 2}, Dtype::kF32);
  Tensor half = Tensor::zeros({2, 3, 2, 2}, Dtype::kF16);
  EXPECT_THROW(adaptive_avg_pool2d_forward(stream, shards, in, other_channels), ShapeError);
  EXPECT_THROW(adaptive_avg_pool2d_forward(stream, Shards::single(1), in, out), ShapeError);
  EXPECT_THROW(adaptive_avg_pool2d_forward(stream, shards, in, half), DtypeError);
  EXPECT_THROW(adaptive_avg_pool2d_backward(stream, shards, in, other_channels), ShapeError);
  const Tensor none = Tensor::zeros({2, 3, 0, 4}, Dtype::kF32);
  const Tensor wide = Tensor::zeros({2, 3, 1, 32768}, Dtype::kF32);
  for (const Tensor& image : {none, wide}) {
    EXPECT_THROW(adaptive_avg_pool2d_forward(stream, shards, image, out), ShapeError);
  }
}

TEST(AdaptiveAvgPool2dSpecial, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Shards shards = Shards::single(2);
  Tensor in = Tensor::empty({2, 3, 4, 4}, Dtype::kF32, Device::kDry);
  Tensor out = Tensor::empty({2, 3, 2, 2}, Dtype::kF32, Device::kDry);
  adaptive_avg_pool2d_forward(stream, shards, in, out);
  adaptive_avg_pool2d_backward(stream, shards, out, in);
  ASSERT_EQ(stream.ledger().size(), 2U);
  for (const LedgerEntry& entry : stream.ledger()) {
    EXPECT_EQ(entry.bytes, 384 + 96);
    EXPECT_EQ(entry.flops, 96 + 24);
  }
}

}  // namespace
}  // namespace lockstep::kernels::adaptive_avg_pool2d_test
