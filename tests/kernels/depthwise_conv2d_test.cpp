#include "kernels/conv/depthwise_conv2d.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/support/depthwise_problem.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::depthwise_conv2d_test {
namespace {

using testing::close;
using testing::DepthwiseConv2dSizes;
using testing::DepthwiseProblem;
using testing::doubles;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

struct Bodies {
  DepthwiseConv2dForward* forward = depthwise_conv2d_forward;
  DepthwiseConv2dBackwardData* backward_data = depthwise_conv2d_backward_data;
  DepthwiseConv2dBackwardWeight* backward_weight = depthwise_conv2d_backward_weight;
};

struct Results {
  Tensor out, grad_in, grad_weight;
};

Results run(Stream& stream, const Shards& shards, const DepthwiseProblem& p, Bodies bodies = {}) {
  Results results{poisoned_tensor(p.grad_out.shape(), p.in.dtype()),
                  poisoned_tensor(p.in.shape(), p.in.dtype()),
                  poisoned_tensor({shards.local(), p.weight.numel()}, Dtype::kF32)};
  bodies.forward(stream, shards, p.in, p.weight, p.params, results.out);
  bodies.backward_data(stream, shards, p.grad_out, p.weight, p.params, results.grad_in);
  bodies.backward_weight(
      stream, shards, {p.in, p.grad_out, p.weight.shape(), p.params, results.grad_weight});
  return results;
}

void expect_same_bits(const Results& got, const Results& want) {
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
  EXPECT_TRUE(same_bits(got.grad_weight, want.grad_weight));
}

class DepthwiseConv2dCases : public ::testing::TestWithParam<DepthwiseConv2dSizes> {};

TEST_P(DepthwiseConv2dCases, MatchReferenceHoweverCut) {
  for (const Dtype dtype : kFloatTypes) {
    const DepthwiseProblem problem(GetParam(), dtype);
    for (const int64_t local : {1, 2, 4}) {
      const Shards shards = Shards::cut(problem.z.n, local, 1);
      Results first;
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{}, {} threads, {} shards", name_of(dtype), threads, local));
        Stream stream(Device::kCpu, threads);
        const Results got = run(stream, shards, problem);
        EXPECT_TRUE(problem.right_out(got.out));
        EXPECT_TRUE(problem.right_grad_in(got.grad_in));
        EXPECT_TRUE(problem.right_grad_weight(got.grad_weight, shards));
        if (threads == 1) first = got;
        expect_same_bits(got, first);
      }
    }
  }
}

TEST_P(DepthwiseConv2dCases, SixteenBitsAreF32Rounded) {
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const DepthwiseProblem problem(GetParam(), dtype);
    DepthwiseProblem wide = problem;
    for (Tensor* tensor : {&wide.in, &wide.weight, &wide.grad_out}) {
      *tensor = rounded_to(Dtype::kF32, *tensor);
    }
    const Shards shards = Shards::cut(problem.z.n, 2, 1);
    Stream stream(Device::kCpu, 2);
    const Results got = run(stream, shards, problem);
    const Results want = run(stream, shards, wide);
    expect_same_bits(
        got, {rounded_to(dtype, want.out), rounded_to(dtype, want.grad_in), want.grad_weight});
  }
}

TEST_P(DepthwiseConv2dCases, InstructionSetsAgree) {
  const auto forward = LS_ISA_BODIES(depthwise_conv2d_forward);
  const auto data = LS_ISA_BODIES(depthwise_conv2d_backward_data);
  const auto weight = LS_ISA_BODIES(depthwise_conv2d_backward_weight);
  for (const Dtype dtype : kFloatTypes) {
    const DepthwiseProblem problem(GetParam(), dtype);
    const Shards shards = Shards::cut(problem.z.n, 2, 1);
    Stream stream;
    const Results want = run(stream, shards, problem);
    for (size_t i = 0; i < forward.size(); ++i) {
      expect_same_bits(run(stream, shards, problem, {forward[i], data[i], weight[i]}), want);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         DepthwiseConv2dCases,
                         ::testing::ValuesIn(testing::kDepthwiseSizes));

TEST(DepthwiseConv2d, WorkersDoNotShareScratch) {
  for (const Dtype dtype : kFloatTypes) {
    const DepthwiseProblem problem(
        {.n = 32, .c = 24, .h = 20, .w = 20, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1}, dtype);
    const Shards shards = Shards::cut(problem.z.n, 16, 1);
    Stream one;
    const Results want = run(one, shards, problem);
    Stream four(Device::kCpu, 4);
    for (int repeat = 0; repeat < 5; ++repeat) {
      expect_same_bits(run(four, shards, problem), want);
    }
  }
}

TEST(DepthwiseConv2d, ReferenceAgreesWithFiniteDifferences) {
  const DepthwiseProblem p(
      {.n = 2, .c = 2, .h = 5, .w = 4, .r = 3, .s = 2, .stride_h = 2, .pad_h = 1, .pad_w = 1},
      Dtype::kF32);
  const std::vector<double> in = doubles(p.in);
  const std::vector<double> weight = doubles(p.weight);
  const std::vector<double> grad_out = doubles(p.grad_out);
  const auto loss = [&](const auto& x, const auto& w) {
    const std::vector<double> out = reference::depthwise_conv2d_forward(x, w, p.z);
    return std::inner_product(out.begin(), out.end(), grad_out.begin(), 0.0);
  };
  const auto expect_gradient = [](const std::vector<double>& got, const auto& f, const auto& at) {
    const std::vector<double> want = testing::numerical_gradient(f, at);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  };
  expect_gradient(
      reference::depthwise_conv2d_backward_data(grad_out, weight, p.z),
      [&](const auto& x) { return loss(x, weight); },
      in);
  expect_gradient(
      reference::depthwise_conv2d_backward_weight(in, grad_out, p.z, 0, p.z.n),
      [&](const auto& w) { return loss(in, w); },
      weight);
}

TEST(DepthwiseConv2d, NanStaysInItsChannelAndShard) {
  for (const Dtype dtype : kFloatTypes) {
    DepthwiseProblem p({.n = 2, .c = 3, .h = 4, .w = 4, .r = 3, .s = 3}, dtype);
    testing::set(p.in, 4, std::numeric_limits<double>::quiet_NaN());  // image 0, channel 1
    Stream stream;
    const Results got = run(stream, Shards::cut(2, 2, 1), p);
    const std::vector<double> out = values_of(got.out);
    for (size_t i = 0; i < out.size(); ++i) {
      const bool may = i % 3 == 1 && i < out.size() / 2;
      EXPECT_TRUE(may || std::isfinite(out[i])) << i;
    }
    for (int64_t i = 0; i < got.grad_weight.numel(); ++i) {
      EXPECT_TRUE(i / 9 == 1 || std::isfinite(got.grad_weight.data<float>()[i])) << i;
    }
    EXPECT_TRUE(std::isnan(out[1]));
    EXPECT_TRUE(std::isnan(got.grad_weight.data<float>()[9]));
  }
}

TEST(DepthwiseConv2d, SixteenBitsOverflowAndKeepDenormals) {
  const auto out_of = [](Dtype dtype, const std::vector<double>& in, double weight) {
    Stream stream;
    Tensor out = poisoned_tensor({1, 1, 1, 4}, dtype);
    depthwise_conv2d_forward(stream,
                             Shards::single(1),
                             testing::tensor_of(in, {1, 1, 1, 4}, dtype),
                             testing::tensor_of(std::vector{weight}, {1, 1, 1, 1}, dtype),
                             {},
                             out);
    return values_of(out);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(out_of(Dtype::kF16, {-kInfinity, 40000, 0x1p-24, 0x1.8p-23}, 2),
            (std::vector<double>{-kInfinity, kInfinity, 0x1p-23, 0x1.8p-22}));
  EXPECT_EQ(out_of(Dtype::kBF16, {-kInfinity, 0x1p127, 0x1p-133, 0x1.8p-132}, 2),
            (std::vector<double>{-kInfinity, kInfinity, 0x1p-132, 0x1.8p-131}));
}

TEST(DepthwiseConv2d, RejectsImpossibleShapes) {
  const Shape in{2, 3, 4, 4};
  EXPECT_EQ(depthwise_conv2d_output_shape(in, {3, 1, 3, 2}, {2, 1, 1, 0}), (Shape{2, 3, 2, 3}));
  EXPECT_THROW(depthwise_conv2d_output_shape({2, 3}, {3, 1, 1, 1}, {}), ShapeError);
  EXPECT_THROW(depthwise_conv2d_output_shape(in, {3, 3, 1, 1}, {}), ShapeError);
  EXPECT_THROW(depthwise_conv2d_output_shape(in, {4, 1, 1, 1}, {}), ShapeError);
  EXPECT_THROW(depthwise_conv2d_output_shape(in, {3, 1, 0, 1}, {}), ShapeError);
  EXPECT_THROW(depthwise_conv2d_output_shape({1, 3, 99, 99}, {3, 1, 33, 32}, {}), ShapeError);
  EXPECT_THROW(depthwise_conv2d_output_shape(in, {3, 1, 1, 1}, {.stride_w = 0}), ShapeError);
  EXPECT_THROW(depthwise_conv2d_output_shape(in, {3, 1, 1, 1}, {.pad_h = -1}), ShapeError);
  try {
    depthwise_conv2d_output_shape(in, {3, 1, 5, 1}, {});
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[depthwise_conv2d] required: a kernel no larger than the padded image; in "
                 "(2,3,4,4), weight (3,1,5,1)");
  }
}

TEST(DepthwiseConv2d, RejectsArgumentsThatDoNotFit) {
  DepthwiseProblem p({.n = 2, .c = 3, .h = 4, .w = 4, .r = 3, .s = 3}, Dtype::kF32);
  Stream stream;
  const Shards shards = Shards::single(2);
  Tensor out = Tensor::zeros(p.grad_out.shape(), Dtype::kF32);
  Tensor leaf = Tensor::zeros({1, 26}, Dtype::kF32);
  const Tensor half = Tensor::zeros(p.weight.shape(), Dtype::kF16);
  EXPECT_THROW(depthwise_conv2d_forward(stream, shards, p.in, p.weight, p.params, p.in),
               ShapeError);
  EXPECT_THROW(depthwise_conv2d_forward(stream, shards, p.in, half, p.params, out), DtypeError);
  EXPECT_THROW(depthwise_conv2d_forward(stream, Shards::single(1), p.in, p.weight, p.params, out),
               ShapeError);
  EXPECT_THROW(depthwise_conv2d_backward_data(stream, shards, p.in, p.weight, p.params, p.in),
               ShapeError);
  EXPECT_THROW(depthwise_conv2d_backward_weight(
                   stream, shards, {p.in, out, p.weight.shape(), p.params, leaf}),
               ShapeError);
  const Tensor halves = Tensor::zeros(p.in.shape(), Dtype::kF16);  // out is f32
  EXPECT_THROW(depthwise_conv2d_forward(stream, shards, halves, half, p.params, out), DtypeError);
}

TEST(DepthwiseConv2d, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const auto dry = [](const Shape& shape, Dtype dtype) {
    return Tensor::empty(shape, dtype, Device::kDry);
  };
  Tensor in = dry({4, 3, 8, 6}, Dtype::kF16);
  const Tensor weight = dry({3, 1, 3, 3}, Dtype::kF16);
  Tensor out = dry({4, 3, 4, 3}, Dtype::kF16);
  Tensor leaves = dry({2, 27}, Dtype::kF32);
  const Shards shards = Shards::cut(4, 2, 1);
  const Conv2dParams params{.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
  depthwise_conv2d_forward(stream, shards, in, weight, params, out);
  depthwise_conv2d_backward_data(stream, shards, out, weight, params, in);
  depthwise_conv2d_backward_weight(stream, shards, {in, out, weight.shape(), params, leaves});
  ASSERT_EQ(stream.ledger().size(), 3U);
  for (const LedgerEntry& entry : stream.ledger()) EXPECT_EQ(entry.flops, 2 * 144 * 9) << entry.op;
  EXPECT_EQ(stream.ledger()[0].bytes, 2 * (576 + 27 + 144));
  EXPECT_EQ(stream.ledger()[1].bytes, 2 * (576 + 27 + 144));
  EXPECT_EQ(stream.ledger()[2].bytes, 2 * (576 + 144) + 4 * 54);
}

}  // namespace
}  // namespace lockstep::kernels::depthwise_conv2d_test
