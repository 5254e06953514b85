#include "kernels/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/reference/linear.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels {
namespace {

using reference::LinearSizes;
using testing::close;
using testing::doubles;
using testing::random_tensor;
using testing::same_bits;

Shape shape(size_t rows, size_t columns) {
  return {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
}

// Tensors of one problem, random.
struct Problem {
  explicit Problem(const LinearSizes& sizes)
      : z(sizes),
        in(random_tensor(shape(z.n, z.k), 1)),
        weight(random_tensor(shape(z.o, z.k), 2)),
        bias(random_tensor({static_cast<int64_t>(z.o)}, 3)),
        grad_out(random_tensor(shape(z.n, z.o), 4)) {}

  Shards cut(int64_t shards) const { return Shards::cut(in.shape()[0], shards, 1); }

  LinearSizes z;
  Tensor in, weight, bias, grad_out;
};

// What the ops make of a problem. Outputs start as 7, so that elements left alone are seen.
struct Results {
  Tensor out, grad_in, grad_weight, grad_bias;
};

Tensor sevens(const Shape& shape) {
  Tensor tensor = Tensor::empty(shape, Dtype::kF32);
  std::ranges::fill(tensor.span<float>(), 7.0F);
  return tensor;
}

Results run(Stream& stream, const Shards& shards, const Problem& p) {
  Results results{.out = sevens(p.grad_out.shape()),
                  .grad_in = sevens(p.in.shape()),
                  .grad_weight = sevens({shards.local(), p.weight.numel()}),
                  .grad_bias = sevens({shards.local(), p.bias.numel()})};
  linear_forward(stream, shards, p.in, p.weight, p.bias, results.out);
  linear_backward_data(stream, shards, p.grad_out, p.weight, results.grad_in);
  linear_backward_weight(stream, shards, p.in, p.grad_out, results.grad_weight, results.grad_bias);
  return results;
}

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

std::vector<float> sum_of_rows(const Tensor& leaves) {
  std::vector<double> sum(static_cast<size_t>(leaves.shape().stride0()));
  const std::vector<double> values = doubles(leaves);
  for (size_t i = 0; i < values.size(); ++i) sum[i % sum.size()] += values[i];
  return floats(sum);
}

// A sum taken one by one may lose half an ulp of its size at each of its terms.
testing::Tolerance sum_of(size_t terms) {
  testing::Tolerance tolerance = testing::f32_sum(static_cast<int64_t>(terms));
  tolerance.abs += 0x1p-24 * static_cast<double>(terms);
  return tolerance;
}

void expect_reference(const Results& got, const Problem& p) {
  const std::vector<double> in = doubles(p.in);
  const std::vector<double> weight = doubles(p.weight);
  const std::vector<double> grad_out = doubles(p.grad_out);
  EXPECT_TRUE(close(got.out.span<const float>(),
                    reference::linear_forward(in, weight, doubles(p.bias), p.z),
                    sum_of(p.z.k)));
  EXPECT_TRUE(close(got.grad_in.span<const float>(),
                    reference::linear_backward_data(grad_out, weight, p.z),
                    sum_of(p.z.o)));
  EXPECT_TRUE(close(sum_of_rows(got.grad_weight),
                    reference::linear_backward_weight(in, grad_out, p.z),
                    sum_of(p.z.n)));
  EXPECT_TRUE(close(
      sum_of_rows(got.grad_bias), reference::linear_backward_bias(grad_out, p.z), sum_of(p.z.n)));
}

class LinearCases : public ::testing::TestWithParam<LinearSizes> {};

TEST_P(LinearCases, MatchReferenceHoweverCut) {
  const Problem problem(GetParam());
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const int64_t shards : {1, 2, 3, 8}) {
      SCOPED_TRACE(fmt::format("{} threads, {} shards", threads, shards));
      expect_reference(run(stream, problem.cut(shards), problem), problem);
    }
  }
}

TEST_P(LinearCases, ShardHasTheBitsOfItsOwnRun) {
  const Problem whole(GetParam());
  const Shards shards = whole.cut(3);
  Stream stream(Device::kCpu, 2);
  const Results together = run(stream, shards, whole);
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t first = shards.begin(k);
    const int64_t count = shards.count(k);
    Problem alone = whole;
    alone.in = whole.in.slice(first, count);
    alone.grad_out = whole.grad_out.slice(first, count);
    Stream other;
    const Results single = run(other, Shards::single(count), alone);
    EXPECT_TRUE(same_bits(together.out.slice(first, count), single.out));
    EXPECT_TRUE(same_bits(together.grad_in.slice(first, count), single.grad_in));
    EXPECT_TRUE(same_bits(together.grad_weight.slice(k, 1), single.grad_weight));
    EXPECT_TRUE(same_bits(together.grad_bias.slice(k, 1), single.grad_bias));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         LinearCases,
                         ::testing::Values(LinearSizes{1, 1, 1},
                                           LinearSizes{1, 37, 5},
                                           LinearSizes{9, 1, 3},
                                           LinearSizes{9, 3, 1},
                                           LinearSizes{5, 16, 16},
                                           LinearSizes{7, 65, 33},
                                           LinearSizes{32, 1568, 10},
                                           LinearSizes{35, 130, 101}),
                         [](const auto& test) {
                           return fmt::format(
                               "{}x{}to{}", test.param.n, test.param.k, test.param.o);
                         });

TEST(Linear, WorkedExample) {
  Stream stream;
  Tensor in = Tensor::empty({1, 3}, Dtype::kF32);
  std::ranges::copy(std::initializer_list<float>{1, 2, 3}, in.data<float>());
  Tensor weight = Tensor::empty({2, 3}, Dtype::kF32);
  std::ranges::copy(std::initializer_list<float>{1, 10, 100, 4, 5, 6}, weight.data<float>());
  Tensor bias = Tensor::empty({2}, Dtype::kF32);
  std::ranges::copy(std::initializer_list<float>{1000, -32}, bias.data<float>());
  Tensor out = sevens({1, 2});
  linear_forward(stream, Shards::single(1), in, weight, bias, out);
  const std::vector<float> want = {1321, 0};
  EXPECT_TRUE(close(out.span<const float>(), want, {}));
}

TEST(Linear, WithoutBias) {
  const Problem p({8, 19, 6});
  const Shards shards = p.cut(2);
  Stream stream(Device::kCpu, 2);
  const Results with = run(stream, shards, p);
  Tensor out = sevens(with.out.shape());
  Tensor grad_weight = sevens(with.grad_weight.shape());
  Tensor none;
  linear_forward(stream, shards, p.in, p.weight, none, out);
  linear_backward_weight(stream, shards, p.in, p.grad_out, grad_weight, none);
  EXPECT_TRUE(close(out.span<const float>(),
                    reference::linear_forward(doubles(p.in), doubles(p.weight), {}, p.z),
                    sum_of(19)));
  EXPECT_TRUE(same_bits(grad_weight, with.grad_weight));
}

TEST(Linear, EmptyShardsLeavePositiveZero) {
  const Problem p({1, 6, 2});
  Stream stream(Device::kCpu, 2);
  const Results got = run(stream, p.cut(4), p);
  for (int64_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(same_bits(got.grad_weight.slice(k, 1), Tensor::zeros({1, 12}, Dtype::kF32)));
    EXPECT_TRUE(same_bits(got.grad_bias.slice(k, 1), Tensor::zeros({1, 2}, Dtype::kF32)));
  }
}

TEST(Linear, PlansOfOneStreamDoNotMix) {
  Stream stream(Device::kCpu, 2);
  for (const LinearSizes& z : {LinearSizes{8, 19, 6}, {8, 19, 7}, {8, 20, 6}, {8, 19, 6}}) {
    const Problem problem(z);
    expect_reference(run(stream, problem.cut(2), problem), problem);
  }
}

TEST(Linear, WorkersDoNotShareScratch) {
  const Problem problem({64, 600, 40});
  const Shards shards = problem.cut(16);
  Stream one;
  const Results want = run(one, shards, problem);
  Stream four(Device::kCpu, 4);
  for (int repeat = 0; repeat < 10; ++repeat) {
    const Results got = run(four, shards, problem);
    ASSERT_TRUE(same_bits(got.out, want.out));
    ASSERT_TRUE(same_bits(got.grad_in, want.grad_in));
    ASSERT_TRUE(same_bits(got.grad_weight, want.grad_weight));
    ASSERT_TRUE(same_bits(got.grad_bias, want.grad_bias));
  }
}

TEST(Linear, NanReachesWhatDependsOnIt) {
  Problem p({4, 9, 5});
  p.in.data<float>()[21] = std::numeric_limits<float>::quiet_NaN();
  p.grad_out.data<float>()[6] = std::numeric_limits<float>::quiet_NaN();
  Stream stream(Device::kCpu, 2);
  const Results got = run(stream, p.cut(2), p);
  expect_reference(got, p);
  EXPECT_TRUE(std::isnan(got.out.data<float>()[10]));
  EXPECT_TRUE(std::isnan(got.grad_in.data<float>()[9]));
  EXPECT_TRUE(std::isnan(got.grad_bias.data<float>()[1]));
  EXPECT_FALSE(std::isnan(got.grad_bias.data<float>()[2]));
}

TEST(Linear, ReferenceAgreesWithFiniteDifferences) {
  const Problem p({3, 4, 2});
  const std::vector<double> in = doubles(p.in);
  const std::vector<double> weight = doubles(p.weight);
  const std::vector<double> bias = doubles(p.bias);
  const std::vector<double> grad_out = doubles(p.grad_out);
  const auto loss = [&](const auto& x, const auto& w, const auto& b) {
    const std::vector<double> out = reference::linear_forward(x, w, b, p.z);
    return std::inner_product(out.begin(), out.end(), grad_out.begin(), 0.0);
  };
  const auto expect_gradient = [](const std::vector<double>& got, const auto& f, const auto& at) {
    EXPECT_TRUE(close(floats(got), testing::numerical_gradient(f, at), {.rel = 1e-6, .abs = 1e-6}));
  };
  expect_gradient(
      reference::linear_backward_data(grad_out, weight, p.z),
      [&](const auto& x) { return loss(x, weight, bias); },
      in);
  expect_gradient(
      reference::linear_backward_weight(in, grad_out, p.z),
      [&](const auto& w) { return loss(in, w, bias); },
      weight);
  expect_gradient(
      reference::linear_backward_bias(grad_out, p.z),
      [&](const auto& b) { return loss(in, weight, b); },
      bias);
}

TEST(Linear, RejectsArgumentsThatDoNotFit) {
  const Problem p({4, 6, 5});
  Stream stream;
  const Shards shards = Shards::single(4);
  Tensor out = sevens({4, 5});
  Tensor grad_in = sevens({4, 6});
  Tensor leaf = sevens({1, 30});
  Tensor two_leaves = sevens({2, 30});
  Tensor none;
  try {
    linear_forward(stream, shards, p.in, sevens({5, 7}), {}, out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[linear_forward] weight: shape (5,7), expected (5,6)");
  }
  EXPECT_THROW(linear_forward(stream, shards, p.in, p.weight, sevens({4}), out), ShapeError);
  EXPECT_THROW(linear_forward(stream, shards, p.in, p.weight, {}, grad_in), ShapeError);
  EXPECT_THROW(linear_forward(stream, Shards::single(3), p.in, p.weight, {}, out), ShapeError);
  EXPECT_THROW(linear_forward(stream, shards, sevens({4, 6, 1, 1}), p.weight, {}, out), ShapeError);
  Tensor no_outputs = sevens({4, 0});
  EXPECT_THROW(linear_forward(stream, shards, p.in, sevens({0, 6}), {}, no_outputs), ShapeError);
  EXPECT_THROW(linear_backward_data(stream, shards, grad_in, p.weight, grad_in), ShapeError);
  EXPECT_THROW(linear_backward_data(stream, shards, p.grad_out, p.weight, out), ShapeError);
  EXPECT_THROW(linear_backward_weight(stream, shards, p.in, p.grad_out, two_leaves, none),
               ShapeError);
  EXPECT_THROW(linear_backward_weight(stream, shards, p.in, p.grad_out, leaf, out), ShapeError);
  const Tensor half = Tensor::zeros({4, 6}, Dtype::kF16);
  EXPECT_THROW(linear_forward(stream, shards, half, p.weight, {}, out), DtypeError);
  const Tensor dry = Tensor::empty({4, 6}, Dtype::kF32, Device::kDry);
  EXPECT_THROW(linear_forward(stream, shards, dry, p.weight, {}, out), DeviceError);
}

TEST(Linear, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const auto dry = [](const Shape& shape) {
    return Tensor::empty(shape, Dtype::kF32, Device::kDry);
  };
  const Shards shards = Shards::cut(4, 2, 1);
  Tensor in = dry({4, 6});
  const Tensor weight = dry({5, 6});
  Tensor out = dry({4, 5});
  Tensor grad_weight = dry({2, 30});
  Tensor grad_bias = dry({2, 5});
  linear_forward(stream, shards, in, weight, dry({5}), out);
  linear_backward_data(stream, shards, out, weight, in);
  linear_backward_weight(stream, shards, in, out, grad_weight, grad_bias);
  ASSERT_EQ(stream.ledger().size(), 3U);
  for (const LedgerEntry& entry : stream.ledger())
    EXPECT_EQ(entry.flops, 2 * 4 * 5 * 6) << entry.op;
  EXPECT_EQ(stream.ledger()[0].op, "linear_forward");
  EXPECT_EQ(stream.ledger()[0].bytes, 4 * (24 + 30 + 5 + 20));
  EXPECT_EQ(stream.ledger()[1].op, "linear_backward_data");
  EXPECT_EQ(stream.ledger()[1].bytes, 4 * (24 + 30 + 20));
  EXPECT_EQ(stream.ledger()[2].op, "linear_backward_weight");
  EXPECT_EQ(stream.ledger()[2].bytes, 4 * (24 + 20 + 60 + 10));
}

}  // namespace
}  // namespace lockstep::kernels
