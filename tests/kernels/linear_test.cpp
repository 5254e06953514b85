#include "kernels/linear/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/support/onednn/version.h"
#include "tests/reference/linear.h"
#include "tests/support/close_sum.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::linear_test {
namespace {

using reference::LinearSizes;
using testing::close;
using testing::close_sum;
using testing::doubles;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

Shape shape(size_t rows, size_t columns) {
  return {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
}

// Tensors of one problem, random.
struct Problem {
  explicit Problem(const LinearSizes& sizes, Dtype dtype = Dtype::kF32)
      : z(sizes),
        in(rounded_to(dtype, random_tensor(shape(z.n, z.k), 1))),
        weight(rounded_to(dtype, random_tensor(shape(z.o, z.k), 2))),
        bias(random_tensor({static_cast<int64_t>(z.o)}, 3)),
        grad_out(rounded_to(dtype, random_tensor(shape(z.n, z.o), 4))) {}

  Shards cut(int64_t shards) const { return Shards::cut(in.shape()[0], shards, 1); }
  Problem images(int64_t first, int64_t count) const {
    Problem part = *this;
    part.z.n = static_cast<size_t>(count);
    part.in = in.slice(first, count);
    part.grad_out = grad_out.slice(first, count);
    return part;
  }
  Problem as(Dtype dtype) const {
    Problem other = *this;
    for (Tensor* tensor : {&other.in, &other.weight, &other.grad_out}) {
      *tensor = rounded_to(dtype, *tensor);
    }
    return other;
  }

  LinearSizes z;
  Tensor in, weight, bias, grad_out;
};

// What the ops make of a problem.
struct Results {
  Tensor out, grad_in, grad_weight, grad_bias;
};

Results run(Stream& stream, const Shards& shards, const Problem& p) {
  const Dtype dtype = p.in.dtype();
  Results results{.out = poisoned_tensor(p.grad_out.shape(), dtype),
                  .grad_in = poisoned_tensor(p.in.shape(), dtype),
                  .grad_weight = poisoned_tensor({shards.local(), p.weight.numel()}, Dtype::kF32),
                  .grad_bias = poisoned_tensor({shards.local(), p.bias.numel()}, Dtype::kF32)};
  linear_forward(stream, shards, p.in, p.weight, p.bias, results.out);
  linear_backward_data(stream, shards, p.grad_out, p.weight, results.grad_in);
  linear_backward_weight(stream, shards, p.in, p.grad_out, results.grad_weight, results.grad_bias);
  return results;
}

void expect_same_bits(const Results& got, const Results& want) {
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
  EXPECT_TRUE(same_bits(got.grad_weight, want.grad_weight));
  EXPECT_TRUE(same_bits(got.grad_bias, want.grad_bias));
}

void expect_reference(const Results& got, const Shards& shards, const Problem& p) {
  const std::vector<double> weight = values_of(p.weight);
  EXPECT_TRUE(close_sum(got.out,
                        reference::linear_forward(values_of(p.in), weight, doubles(p.bias), p.z),
                        p.in.shape()[1]));
  EXPECT_TRUE(close_sum(got.grad_in,
                        reference::linear_backward_data(values_of(p.grad_out), weight, p.z),
                        p.bias.numel()));
  for (int64_t k = 0; k < shards.local(); ++k) {
    const Problem part = p.images(shards.begin(k), shards.count(k));
    const std::vector<double> grad_out = values_of(part.grad_out);
    EXPECT_TRUE(close_sum(got.grad_weight.slice(k, 1),
                          reference::linear_backward_weight(values_of(part.in), grad_out, part.z),
                          shards.count(k)));
    EXPECT_TRUE(close_sum(got.grad_bias.slice(k, 1),
                          reference::linear_backward_bias(grad_out, part.z),
                          shards.count(k)));
  }
}

class LinearCases : public ::testing::TestWithParam<LinearSizes> {};

TEST_P(LinearCases, MatchReferenceHoweverCut) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem problem(GetParam(), dtype);
    for (const int64_t count : {1, 2, 3, 8}) {
      const Shards shards = problem.cut(count);
      Stream one;
      const Results want = run(one, shards, problem);
      SCOPED_TRACE(fmt::format("{}, {} shards", name_of(dtype), count));
      expect_reference(want, shards, problem);
      for (const int threads : {2, 3}) {
        Stream stream(Device::kCpu, threads);
        expect_same_bits(run(stream, shards, problem), want);
      }
    }
  }
}

TEST_P(LinearCases, ShardHasTheBitsOfItsOwnRun) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem whole(GetParam(), dtype);
    const Shards shards = whole.cut(3);
    Stream stream(Device::kCpu, 2);
    const Results together = run(stream, shards, whole);
    for (int64_t k = 0; k < shards.local(); ++k) {
      const int64_t first = shards.begin(k);
      const int64_t count = shards.count(k);
      Stream other;
      const Results single = run(other, Shards::single(count), whole.images(first, count));
      expect_same_bits({together.out.slice(first, count),
                        together.grad_in.slice(first, count),
                        together.grad_weight.slice(k, 1),
                        together.grad_bias.slice(k, 1)},
                       single);
    }
  }
}

// Where oneDNN has no arithmetic of its own.
TEST_P(LinearCases, SixteenBitsAreF32Rounded) {
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    if (dtype == Dtype::kBF16 && onednn_has_bf16()) continue;
    const Problem problem(GetParam(), dtype);
    Stream stream(Device::kCpu, 2);
    const Results got = run(stream, problem.cut(2), problem);
    const Results want = run(stream, problem.cut(2), problem.as(Dtype::kF32));
    expect_same_bits(got,
                     {rounded_to(dtype, want.out),
                      rounded_to(dtype, want.grad_in),
                      want.grad_weight,
                      want.grad_bias});
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
  Tensor out = poisoned_tensor({1, 2}, Dtype::kF32);
  linear_forward(stream, Shards::single(1), in, weight, bias, out);
  const std::vector<float> want = {1321, 0};
  EXPECT_TRUE(close(out.span<const float>(), want, {}));
}

TEST(Linear, WithoutBias) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem p({8, 19, 6}, dtype);
    const Shards shards = p.cut(2);
    Stream stream(Device::kCpu, 2);
    const Results with = run(stream, shards, p);
    Tensor out = poisoned_tensor(with.out.shape(), dtype);
    Tensor grad_weight = poisoned_tensor(with.grad_weight.shape(), Dtype::kF32);
    Tensor none;
    linear_forward(stream, shards, p.in, p.weight, none, out);
    linear_backward_weight(stream, shards, p.in, p.grad_out, grad_weight, none);
    EXPECT_TRUE(close_sum(
        out, reference::linear_forward(values_of(p.in), values_of(p.weight), {}, p.z), 19));
    EXPECT_TRUE(same_bits(grad_weight, with.grad_weight));
  }
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
    for (const Dtype dtype : kFloatTypes) {
      const Problem problem(z, dtype);
      expect_reference(run(stream, problem.cut(2), problem), problem.cut(2), problem);
    }
  }
}

TEST(Linear, WorkersDoNotShareScratch) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem problem({64, 600, 40}, dtype);
    const Shards shards = problem.cut(16);
    Stream one;
    const Results want = run(one, shards, problem);
    Stream four(Device::kCpu, 4);
    for (int repeat = 0; repeat < 10; ++repeat) {
      expect_same_bits(run(four, shards, problem), want);
    }
  }
}

TEST(Linear, NanReachesWhatDependsOnIt) {
  for (const Dtype dtype : kFloatTypes) {
    Problem p({4, 9, 5}, dtype);
    testing::set(p.in, 21, std::numeric_limits<double>::quiet_NaN());
    testing::set(p.grad_out, 6, std::numeric_limits<double>::quiet_NaN());
    Stream stream(Device::kCpu, 2);
    const Results got = run(stream, p.cut(2), p);
    expect_reference(got, p.cut(2), p);
    EXPECT_TRUE(std::isnan(testing::get(got.out, 10)));
    EXPECT_TRUE(std::isnan(testing::get(got.grad_in, 9)));
    EXPECT_TRUE(std::isnan(got.grad_bias.data<float>()[1]));
    EXPECT_FALSE(std::isnan(got.grad_bias.data<float>()[2]));
  }
}

// Ties at 2049 and 2051 (257 and 259) go to even; a denormal of f16 stays.
TEST(Linear, SixteenBitsRoundOnceAndOverflow) {
  const auto out_of = [](Dtype dtype, const std::vector<double>& in) {
    Stream stream;
    Tensor out = poisoned_tensor({4, 1}, dtype);
    linear_forward(stream,
                   Shards::single(4),
                   testing::tensor_of(in, {4, 2}, dtype),
                   testing::tensor_of(std::vector{1.0, 1.0}, {1, 2}, dtype),
                   {},
                   out);
    return values_of(out);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(out_of(Dtype::kF16, {2048, 1, 2050, 1, 65504, 16, 0x1p-24, 0x1p-23}),
            (std::vector<double>{2048, 2052, kInfinity, 0x1.8p-23}));
  EXPECT_EQ(out_of(Dtype::kBF16, {256, 1, 258, 1, -0x1.fep127, -0x1p120, 0x1p-100, 0x1p-99}),
            (std::vector<double>{256, 260, -kInfinity, 0x1.8p-99}));
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
    EXPECT_TRUE(close(std::vector<float>(got.begin(), got.end()),
                      testing::numerical_gradient(f, at),
                      {.rel = 1e-6, .abs = 1e-6}));
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
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, Dtype::kF32); };
  const Problem p({4, 6, 5});
  Stream stream;
  const Shards shards = Shards::single(4);
  Tensor out = zeros({4, 5});
  Tensor grad_in = zeros({4, 6});
  Tensor leaf = zeros({1, 30});
  Tensor two_leaves = zeros({2, 30});
  Tensor none;
  try {
    linear_forward(stream, shards, p.in, zeros({5, 7}), {}, out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[linear_forward] weight: shape (5,7), expected (5,6)");
  }
  EXPECT_THROW(linear_forward(stream, shards, p.in, p.weight, zeros({4}), out), ShapeError);
  EXPECT_THROW(linear_forward(stream, shards, p.in, p.weight, {}, grad_in), ShapeError);
  EXPECT_THROW(linear_forward(stream, Shards::single(3), p.in, p.weight, {}, out), ShapeError);
  EXPECT_THROW(linear_forward(stream, shards, zeros({4, 6, 1, 1}), p.weight, {}, out), ShapeError);
  Tensor no_outputs = zeros({4, 0});
  EXPECT_THROW(linear_forward(stream, shards, p.in, zeros({0, 6}), {}, no_outputs), ShapeError);
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
}  // namespace lockstep::kernels::linear_test
