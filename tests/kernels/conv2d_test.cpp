#include "kernels/conv/conv2d.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/support/onednn/version.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"

namespace lockstep::kernels::conv2d_test {
namespace {

using reference::Conv2dSizes;
using testing::close;
using testing::doubles;
using testing::expect_reference;
using testing::expect_same_bits;
using testing::in_groups;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::run;
using testing::same_bits;
using testing::square;
using testing::values_of;
using Problem = testing::Conv2dProblem;
using Results = testing::Conv2dResults;

class Conv2dCases : public ::testing::TestWithParam<Conv2dSizes> {};

TEST_P(Conv2dCases, MatchReferenceHoweverCut) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem problem(GetParam(), dtype);
    const testing::Conv2dReference reference(problem);
    for (const int64_t count : {1, 2, 3, 8}) {
      const Shards shards = Shards::cut(problem.z.n, count, 1);
      Stream one;
      const Results want = run(one, shards, problem);
      SCOPED_TRACE(fmt::format("{}, {} shards", name_of(dtype), count));
      expect_reference(want, shards, problem, reference);
      for (const int threads : {2, 3}) {
        Stream stream(Device::kCpu, threads);
        expect_same_bits(run(stream, shards, problem), want);
      }
    }
  }
}

TEST_P(Conv2dCases, ShardHasTheBitsOfItsOwnRun) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem whole(GetParam(), dtype);
    const Shards shards = Shards::cut(whole.z.n, 3, 1);
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
TEST_P(Conv2dCases, SixteenBitsAreF32Rounded) {
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    if (dtype == Dtype::kBF16 && onednn_has_bf16()) continue;
    const Problem problem(GetParam(), dtype);
    const Shards shards = Shards::cut(problem.z.n, 2, 1);
    Stream stream(Device::kCpu, 2);
    const Results got = run(stream, shards, problem);
    const Results want = run(stream, shards, problem.as(Dtype::kF32));
    expect_same_bits(got,
                     {rounded_to(dtype, want.out),
                      rounded_to(dtype, want.grad_in),
                      want.grad_weight,
                      want.grad_bias});
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         Conv2dCases,
                         ::testing::Values(square(5, 16, 6, 32, 1, 1, 0),
                                           square(5, 16, 7, 16, 1, 2, 0),
                                           // oneDNN writes 351,076 bytes behind its scratchpad
                                           Conv2dSizes{1, 1, 224, 226, 16, 1, 1, 2, 2, 0, 0},
                                           square(4, 16, 8, 16, 3, 1, 1),
                                           square(5, 1, 13, 16, 5, 1, 2),
                                           square(3, 1, 9, 20, 5, 1, 2),
                                           square(5, 16, 9, 32, 5, 1, 2),
                                           square(4, 16, 11, 24, 3, 2, 1),
                                           square(3, 3, 23, 16, 7, 2, 3),
                                           square(5, 5, 9, 7, 3, 1, 1),
                                           square(1, 3, 8, 5, 3, 1, 1),
                                           square(9, 4, 1, 3, 1, 1, 0),
                                           square(3, 2, 1, 2, 3, 1, 1),
                                           square(2, 3, 6, 4, 1, 1, 2),
                                           square(4, 40, 4, 72, 3, 1, 1),
                                           square(2, 32, 23, 48, 3, 1, 1),  // Winograd
                                           square(4, 48, 14, 32, 3, 1, 1),  // in large shards
                                           in_groups(32, square(3, 128, 7, 128, 3, 2, 1)),
                                           in_groups(8, square(3, 128, 9, 128, 3, 1, 1)),
                                           in_groups(3, square(4, 6, 5, 9, 3, 1, 1)),
                                           // as large as what Winograd takes, which has no groups
                                           in_groups(2, square(2, 64, 16, 64, 3, 1, 1)),
                                           Conv2dSizes{.n = 4,
                                                       .c = 3,
                                                       .h = 12,
                                                       .w = 7,
                                                       .k = 6,
                                                       .r = 2,
                                                       .s = 5,
                                                       .stride_h = 3,
                                                       .stride_w = 1,
                                                       .pad_h = 0,
                                                       .pad_w = 2}),
                         [](const auto& test) {
                           const Conv2dSizes& z = test.param;
                           return fmt::format(
                               "in{}x{}x{}x{}_weight{}x{}x{}_stride{}x{}_pad{}x{}_groups{}",
                               z.n,
                               z.c,
                               z.h,
                               z.w,
                               z.k,
                               z.r,
                               z.s,
                               z.stride_h,
                               z.stride_w,
                               z.pad_h,
                               z.pad_w,
                               z.groups);
                         });

TEST(Conv2d, WorkedExample) {
  Stream stream;
  Tensor in = Tensor::empty({1, 1, 3, 3}, Dtype::kF32);
  std::iota(in.data<float>(), in.data<float>() + 9, 1.0F);
  Tensor weight = Tensor::empty({1, 1, 2, 2}, Dtype::kF32);
  std::ranges::copy(std::initializer_list<float>{1, 10, 100, 1000}, weight.data<float>());
  Tensor out = poisoned_tensor({1, 1, 2, 2}, Dtype::kF32);
  conv2d_forward(stream, Shards::single(1), {in, weight, {}, {}, out});
  const std::vector<float> want = {5421, 6532, 8754, 9865};
  EXPECT_TRUE(close(out.span<const float>(), want, {}));
}

TEST(Conv2d, WithoutBias) {
  const Shards shards = Shards::cut(4, 2, 1);
  Stream stream(Device::kCpu, 2);
  for (const Dtype dtype : kFloatTypes) {
    const Problem p(square(4, 5, 6, 7, 3, 1, 1), dtype);
    const Results with = run(stream, shards, p);
    Tensor out = poisoned_tensor(p.grad_out.shape(), dtype);
    Tensor grad_weight = poisoned_tensor(with.grad_weight.shape(), Dtype::kF32);
    conv2d_forward(stream, shards, {p.in, p.weight, {}, p.params, out});
    conv2d_backward_weight(
        stream, shards, {p.in, p.grad_out, p.weight.shape(), p.params, grad_weight});
    EXPECT_TRUE(p.right_sum(
        out, reference::conv2d_forward(values_of(p.in), values_of(p.weight), {}, p.z), 45));
    EXPECT_TRUE(p.right_sum(grad_weight, values_of(with.grad_weight), 72));
  }
}

TEST(Conv2d, EmptyShardsLeavePositiveZero) {
  const Problem p(square(1, 3, 4, 2, 3, 1, 1));
  Stream stream(Device::kCpu, 2);
  const Results got = run(stream, Shards::cut(1, 4, 1), p);
  for (int64_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(same_bits(got.grad_weight.slice(k, 1), Tensor::zeros({1, 54}, Dtype::kF32)));
    EXPECT_TRUE(same_bits(got.grad_bias.slice(k, 1), Tensor::zeros({1, 2}, Dtype::kF32)));
  }
  const Problem none(square(0, 3, 4, 2, 3, 1, 1));
  EXPECT_TRUE(same_bits(run(stream, Shards::cut(0, 2, 1), none).grad_weight,
                        Tensor::zeros({2, 54}, Dtype::kF32)));
}

TEST(Conv2d, PlansOfOneStreamDoNotMix) {
  Stream stream(Device::kCpu, 2);
  const Conv2dSizes sizes = square(4, 6, 9, 6, 3, 1, 1);
  Conv2dSizes strided = sizes;
  strided.stride_w = 2;
  Conv2dSizes tall = sizes;
  tall.stride_h = 2;
  Conv2dSizes padded = sizes;
  padded.pad_h = 2;
  Conv2dSizes wide = sizes;
  wide.pad_w = 0;
  Conv2dSizes flat = sizes;
  flat.r = 1;
  const Conv2dSizes pairs = in_groups(3, sizes), halves = in_groups(2, sizes);
  for (const Conv2dSizes& z : {sizes, strided, tall, padded, wide, flat, pairs, halves, sizes}) {
    for (const Dtype dtype : kFloatTypes) {
      const Problem problem(z, dtype);
      const Shards shards = Shards::cut(z.n, 2, 1);
      expect_reference(run(stream, shards, problem), shards, problem);
    }
  }
}

TEST(Conv2d, WorkersDoNotShareScratch) {
  for (const Conv2dSizes& z : {square(48, 16, 16, 32, 1, 2, 0), square(48, 8, 12, 24, 3, 1, 1)}) {
    for (const Dtype dtype : kFloatTypes) {
      const Problem problem(z, dtype);
      const Shards shards = Shards::cut(z.n, 16, 1);
      Stream one;
      const Results want = run(one, shards, problem);
      Stream four(Device::kCpu, 4);
      for (int repeat = 0; repeat < 10; ++repeat) {
        expect_same_bits(run(four, shards, problem), want);
      }
    }
  }
}

int64_t process_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// New threads start with OpenMP's own thread count, all cores, so each op gets a caller and a
// worker of its own.
TEST(Conv2d, OpenMpStartsNoThreads) {
  const Problem p(square(8, 16, 14, 32, 5, 1, 2));
  const Shards shards = Shards::cut(8, 2, 1);
  Stream caller;
  Results got = run(caller, shards, p);  // for its tensors
  const auto on_new_thread = [](const auto& op) {
    std::thread([&] {
      Stream stream(Device::kCpu, 2);
      const int64_t before = process_threads();
      op(stream);
      EXPECT_LE(process_threads(), before);
    }).join();
  };
  on_new_thread([&](Stream& stream) {
    conv2d_forward(stream, shards, {p.in, p.weight, p.bias, p.params, got.out});
  });
  on_new_thread([&](Stream& stream) {
    conv2d_backward_data(stream, shards, p.grad_out, p.weight, p.params, got.grad_in);
  });
  on_new_thread([&](Stream& stream) {
    conv2d_backward_weight(
        stream,
        shards,
        {p.in, p.grad_out, p.weight.shape(), p.params, got.grad_weight, &got.grad_bias});
  });
  expect_reference(got, shards, p);
}

// The library may multiply NaN by padding's zeros, which the reference leaves out, so more of the
// same shard may be NaN.
void expect_nans(const Tensor& got, const std::vector<double>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    const double value = testing::get(got, static_cast<int64_t>(i));
    EXPECT_TRUE(!std::isnan(want[i]) || std::isnan(value)) << "element " << i;
  }
}

bool has_nan(const Tensor& tensor) {
  return std::ranges::any_of(values_of(tensor), [](double x) { return std::isnan(x); });
}

TEST(Conv2d, NanReachesWhatDependsOnIt) {
  for (const Dtype dtype : kFloatTypes) {
    Problem p(square(2, 2, 5, 3, 3, 1, 1), dtype);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    testing::set(p.in, 24, nan);       // image 0, center pixel
    testing::set(p.grad_out, 0, nan);  // image 0, corner
    Stream stream(Device::kCpu, 2);
    const Results got = run(stream, Shards::cut(2, 2, 1), p);
    const std::vector<double> in = values_of(p.in);
    const std::vector<double> weight = values_of(p.weight);
    const std::vector<double> grad_out = values_of(p.grad_out);
    expect_nans(got.out, reference::conv2d_forward(in, weight, doubles(p.bias), p.z));
    expect_nans(got.grad_in, reference::conv2d_backward_data(grad_out, weight, p.z));
    const Problem first = p.images(0, 1);
    expect_nans(
        got.grad_weight.slice(0, 1),
        reference::conv2d_backward_weight(values_of(first.in), values_of(first.grad_out), first.z));
    expect_nans(got.grad_bias.slice(0, 1),
                reference::conv2d_backward_bias(values_of(first.grad_out), p.z.k));
    for (const Tensor* result : {&got.out, &got.grad_in, &got.grad_weight, &got.grad_bias}) {
      EXPECT_TRUE(has_nan(result->slice(0, 1))) << name_of(dtype);
      EXPECT_FALSE(has_nan(result->slice(1, 1))) << name_of(dtype);
    }
  }
}

// Pairs of an odd number of channels must not reach past the shard's last pixel.
TEST(Conv2d, NanBehindAShardStaysThere) {
  for (const Dtype dtype : kFloatTypes) {
    for (const Conv2dSizes& z : {square(2, 3, 5, 3, 1, 1, 0), square(2, 5, 6, 17, 3, 1, 1)}) {
      Problem p(z, dtype);
      const double nan = std::numeric_limits<double>::quiet_NaN();
      for (int64_t i = 0; i < 4; ++i) {
        testing::set(p.in, p.in.shape().stride0() + i, nan);
        testing::set(p.grad_out, p.grad_out.shape().stride0() + i, nan);
      }
      Stream stream;
      const Results got = run(stream, Shards::cut(2, 2, 1), p);
      for (const Tensor* result : {&got.out, &got.grad_in, &got.grad_weight, &got.grad_bias}) {
        EXPECT_FALSE(has_nan(result->slice(0, 1))) << name_of(dtype);
        EXPECT_TRUE(has_nan(result->slice(1, 1))) << name_of(dtype);
      }
    }
  }
}

// One tap on one channel, weight 1: out = in + bias, rounded once.
TEST(Conv2d, SixteenBitsRoundOnce) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor bias = testing::tensor_of(std::vector{0.0, 1.0}, {2}, Dtype::kF32);
  const auto expect = [&](Dtype dtype, const std::vector<double>& in, const auto& want) {
    Stream stream;
    Tensor out = poisoned_tensor({1, 2, 1, 4}, dtype);
    conv2d_forward(stream,
                   Shards::single(1),
                   {testing::tensor_of(in, {1, 1, 1, 4}, dtype),
                    testing::tensor_of(std::vector{1.0, 1.0}, {2, 1, 1, 1}, dtype),
                    bias,
                    {},
                    out});
    EXPECT_EQ(values_of(out), want) << name_of(dtype);
  };
  // Ties at 2049 and 2051, 257 and 259 go to even; a denormal of f16 stays.
  expect(Dtype::kF16,
         {-kInfinity, 2048, 2050, 0x1p-24},
         std::vector<double>{-kInfinity, -kInfinity, 2048, 2048, 2050, 2052, 0x1p-24, 1});
  expect(Dtype::kBF16,
         {kInfinity, 256, 258, 0x1p-100},
         std::vector<double>{kInfinity, kInfinity, 256, 256, 258, 260, 0x1p-100, 1});
}

TEST(Conv2d, ReferenceAgreesWithFiniteDifferences) {
  const Problem p({.n = 2,
                   .c = 2,
                   .h = 5,
                   .w = 4,
                   .k = 3,
                   .r = 3,
                   .s = 2,
                   .stride_h = 2,
                   .pad_h = 1,
                   .pad_w = 1});
  const std::vector<double> in = doubles(p.in);
  const std::vector<double> weight = doubles(p.weight);
  const std::vector<double> grad_out = doubles(p.grad_out);
  const auto loss = [&](const auto& x, const auto& w, const auto& b) {
    const std::vector<double> out = reference::conv2d_forward(x, w, b, p.z);
    return std::inner_product(out.begin(), out.end(), grad_out.begin(), 0.0);
  };
  const auto expect_gradient = [](const std::vector<double>& got, const auto& f, const auto& at) {
    EXPECT_TRUE(close(std::vector<float>(got.begin(), got.end()),
                      testing::numerical_gradient(f, at),
                      {.rel = 1e-6, .abs = 1e-6}));
  };
  const std::vector<double> bias = doubles(p.bias);
  expect_gradient(
      reference::conv2d_backward_data(grad_out, weight, p.z),
      [&](const auto& x) { return loss(x, weight, bias); },
      in);
  expect_gradient(
      reference::conv2d_backward_weight(in, grad_out, p.z),
      [&](const auto& w) { return loss(in, w, bias); },
      weight);
  expect_gradient(
      reference::conv2d_backward_bias(grad_out, p.z.k),
      [&](const auto& b) { return loss(in, weight, b); },
      bias);
}

}  // namespace
}  // namespace lockstep::kernels::conv2d_test
