#include "kernels/random/stochastic_depth.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/random/depth_draw.h"
#include "tests/reference/stochastic_depth.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::stochastic_depth_test {
namespace {

using testing::close;
using testing::doubles;
using testing::floats_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

constexpr StochasticDepthParams kParams = {.p = 0.4, .seed = 0x9876543210, .block = 3};
constexpr reference::StochasticDepth kRule = {.p = 0.4, .seed = 0x9876543210, .block = 3};

std::vector<int64_t> numbers(int64_t images) {
  std::vector<int64_t> result;
  for (int64_t n = 0; n < images; ++n) result.push_back((n << 31) + 5 * n);
  return result;
}

Tensor tensor_of_numbers(int64_t images) {
  Tensor tensor = Tensor::empty({images}, Dtype::kI64);
  std::ranges::copy(numbers(images), tensor.data<int64_t>());
  return tensor;
}

struct Result {
  Tensor out, grad_branch, grad_shortcut;
};

Result run(Stream& stream,
           const Tensor& branch,
           const Tensor& shortcut,
           const Tensor& grad_out,
           const StochasticDepthParams& params = kParams,
           StochasticDepthForward* forward = stochastic_depth_forward,
           StochasticDepthBackward* backward = stochastic_depth_backward) {
  const Tensor images = tensor_of_numbers(branch.shape()[0]);
  Result result{poisoned_tensor(branch.shape(), branch.dtype()),
                poisoned_tensor(branch.shape(), branch.dtype()),
                rounded_to(branch.dtype(), grad_out)};
  forward(stream, branch, shortcut, images, params, result.out);
  backward(stream, result.out, images, params, result.grad_shortcut, result.grad_branch);
  return result;
}

TEST(StochasticDepth, MatchesReferenceOnAnyNumberOfThreads) {
  for (const Shape& shape : {Shape{0, 8}, Shape{3, 0}, Shape{9, 5}, Shape{6, 3, 16, 70}}) {
    for (const Dtype dtype : kFloatTypes) {
      SCOPED_TRACE(name_of(dtype));
      const Tensor branch = rounded_to(dtype, random_tensor(shape, 1));
      const Tensor shortcut = rounded_to(dtype, random_tensor(shape, 2));
      const Tensor grad = rounded_to(dtype, random_tensor(shape, 3));
      const auto images = numbers(shape[0]);
      const auto want =
          reference::stochastic_depth(values_of(branch), values_of(shortcut), images, kRule);
      const double rounding = dtype == Dtype::kF32 ? 0 : dtype == Dtype::kF16 ? 0x1p-11 : 0x1p-8;
      for (const int threads : {1, 2, 3}) {
        Stream stream(Device::kCpu, threads);
        const Result got = run(stream, branch, shortcut, grad);
        const auto gradients = reference::stochastic_depth_gradients(
            values_of(got.out), values_of(grad), images, kRule);
        EXPECT_TRUE(close(floats_of(got.out), want, {.rel = rounding + 1e-6, .abs = 3e-7}));
        EXPECT_TRUE(close(floats_of(got.grad_shortcut), gradients.shortcut, {}));
        EXPECT_TRUE(close(
            floats_of(got.grad_branch), gradients.branch, {.rel = rounding + 1e-6, .abs = 3e-8}));
      }
    }
  }
}

TEST(StochasticDepth, ReferenceGradientIsTheDerivative) {
  const std::vector<double> branch = doubles(random_tensor({4, 3}, 1));
  const std::vector<double> shortcut = doubles(random_tensor({4, 3}, 2));
  const auto images = numbers(4);
  const auto sum = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double total = 0;
    for (const double value : reference::stochastic_depth(a, b, images, kRule)) total += value;
    return total;
  };
  const auto gradients = reference::stochastic_depth_gradients(
      reference::stochastic_depth(branch, shortcut, images, kRule),
      std::vector<double>(12, 1),
      images,
      kRule);
  const auto by_branch = testing::numerical_gradient(
      [&](const std::vector<double>& x) { return sum(x, shortcut); }, branch);
  const auto by_shortcut = testing::numerical_gradient(
      [&](const std::vector<double>& x) { return sum(branch, x); }, shortcut);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(gradients.branch[i], by_branch[i], 1e-8);
    EXPECT_NEAR(gradients.shortcut[i], by_shortcut[i], 1e-8);
  }
}

TEST(StochasticDepth, LeavesOutThePartThatIsAskedFor) {
  constexpr int kImages = 100000;
  for (const double p : {0.0, 0.05, 0.5, 1.0}) {
    for (const uint32_t block : {0U, 15U}) {
      const DepthDraw draw({.p = p, .seed = 7, .block = block});
      int left_out = 0;
      for (int64_t n = 0; n < kImages; ++n) left_out += draw.factor(n) == 0;
      EXPECT_NEAR(left_out, p * kImages, 5 * std::sqrt(kImages * p * (1 - p))) << p;
    }
  }
}

TEST(StochasticDepth, BlocksAndSeedsDrawForThemselves) {
  const DepthDraw first({.p = 0.5, .seed = 7, .block = 0});
  const DepthDraw next({.p = 0.5, .seed = 7, .block = 1});
  const DepthDraw other({.p = 0.5, .seed = 8, .block = 0});
  int same_as_next = 0;
  int same_as_other = 0;
  for (int64_t n = 0; n < 10000; ++n) {
    same_as_next += first.factor(n) == next.factor(n);
    same_as_other += first.factor(n) == other.factor(n);
  }
  EXPECT_NEAR(same_as_next, 5000, 250);
  EXPECT_NEAR(same_as_other, 5000, 250);
}

TEST(StochasticDepth, TheEndsAreAllAndNone) {
  Stream stream;
  const Tensor branch = random_tensor({4, 5}, 1);
  const Tensor shortcut = random_tensor({4, 5}, 2, 0, 1);
  const Tensor grad = random_tensor({4, 5}, 3);
  const Result none = run(stream, branch, shortcut, grad, {.p = 1});
  EXPECT_TRUE(same_bits(none.out, shortcut));
  EXPECT_TRUE(same_bits(none.grad_shortcut, grad));
  for (const float value : none.grad_branch.span<const float>()) EXPECT_EQ(value, 0);
  const Result all = run(stream, branch, shortcut, grad, {.p = 0});
  EXPECT_TRUE(same_bits(all.grad_branch, all.grad_shortcut));
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(all.out.data<float>()[i],
              std::max(0.0F, branch.data<float>()[i] + shortcut.data<float>()[i]));
  }
}

TEST(StochasticDepth, NanPassesAndIsNotLeftOut) {
  Stream stream;
  const Tensor nan = tensor_of(std::vector<double>{NAN, INFINITY}, {1, 2}, Dtype::kF32);
  const Tensor ones = tensor_of(std::vector<double>{1, 1}, {1, 2}, Dtype::kF32);
  const Result got = run(stream, nan, ones, ones, {.p = 1});
  EXPECT_TRUE(std::isnan(got.out.data<float>()[0]));
  EXPECT_TRUE(std::isnan(got.out.data<float>()[1]));
  EXPECT_EQ(got.grad_shortcut.data<float>()[0], 1);
}

TEST(StochasticDepth, InstructionSetsAgree) {
  Stream stream;
  const auto forwards = LS_ISA_BODIES(stochastic_depth_forward);
  const auto backwards = LS_ISA_BODIES(stochastic_depth_backward);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor branch = rounded_to(dtype, random_tensor({5, 37}, 1));
    const Tensor shortcut = rounded_to(dtype, random_tensor({5, 37}, 2));
    const Tensor grad = rounded_to(dtype, random_tensor({5, 37}, 3));
    const Result want = run(stream, branch, shortcut, grad);
    for (size_t i = 0; i < forwards.size(); ++i) {
      const Result got = run(stream, branch, shortcut, grad, kParams, forwards[i], backwards[i]);
      EXPECT_TRUE(same_bits(got.out, want.out));
      EXPECT_TRUE(same_bits(got.grad_branch, want.grad_branch));
      EXPECT_TRUE(same_bits(got.grad_shortcut, want.grad_shortcut));
    }
  }
}

TEST(StochasticDepth, RejectsWhatDoesNotFit) {
  Stream stream;
  const Tensor x = Tensor::zeros({2, 3}, Dtype::kF32);
  const Tensor wide = Tensor::zeros({2, 4}, Dtype::kF32);
  EXPECT_THROW(run(stream, x, wide, x), ShapeError);
  EXPECT_THROW(run(stream, x, x, wide), ShapeError);
  EXPECT_THROW(run(stream, x, x, x, {.p = -0.1}), ShapeError);
  EXPECT_THROW(run(stream, x, x, x, {.p = 1.1}), ShapeError);
  EXPECT_THROW(run(stream, x, x, x, {.p = NAN}), ShapeError);
}

TEST(StochasticDepth, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor x = Tensor::empty({4, 10}, Dtype::kF32, Device::kDry);
  const Tensor images = Tensor::empty({4}, Dtype::kI64, Device::kDry);
  Tensor out = Tensor::empty({4, 10}, Dtype::kF32, Device::kDry);
  Tensor grad = Tensor::empty({4, 10}, Dtype::kF32, Device::kDry);
  stochastic_depth_forward(stream, x, x, images, kParams, out);
  stochastic_depth_backward(stream, x, images, kParams, grad, out);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 3 * 160 + 32);
  EXPECT_EQ(stream.ledger()[1].bytes, 4 * 160 + 32);
}

}  // namespace
}  // namespace lockstep::kernels::stochastic_depth_test
