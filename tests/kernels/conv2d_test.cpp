#include "kernels/conv2d.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "tests/reference/conv2d.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels {
namespace {

using reference::Conv2dSizes;
using testing::close;
using testing::doubles;
using testing::random_tensor;
using testing::same_bits;

Conv2dParams params_of(const Conv2dSizes& z) {
  return {.stride_h = static_cast<int>(z.stride_h),
          .stride_w = static_cast<int>(z.stride_w),
          .pad_h = static_cast<int>(z.pad_h),
          .pad_w = static_cast<int>(z.pad_w)};
}

Shape weight_shape(const Conv2dSizes& z) {
  return {z.k, z.c, z.r, z.s};
}

// Tensors of one problem, random.
struct Problem {
  explicit Problem(const Conv2dSizes& sizes)
      : z(sizes),
        in(random_tensor({z.n, z.c, z.h, z.w}, 1)),
        weight(random_tensor(weight_shape(z), 2)),
        bias(random_tensor({z.k}, 3)),
        grad_out(random_tensor({z.n, z.k, z.oh(), z.ow()}, 4)) {}

  Conv2dSizes z;
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
  const Conv2dParams params = params_of(p.z);
  Results results{.out = sevens(p.grad_out.shape()),
                  .grad_in = sevens(p.in.shape()),
                  .grad_weight = sevens({shards.local(), p.weight.numel()}),
                  .grad_bias = sevens({shards.local(), p.z.k})};
  conv2d_forward(stream, shards, p.in, p.weight, p.bias, params, results.out);
  conv2d_backward_data(stream, shards, p.grad_out, p.weight, params, results.grad_in);
  conv2d_backward_weight(stream,
                         shards,
                         p.in,
                         p.grad_out,
                         p.weight.shape(),
                         params,
                         results.grad_weight,
                         results.grad_bias);
  return results;
}

// Sum over a tensor's rows, in double.
std::vector<double> sum_of_rows(const Tensor& leaves) {
  std::vector<double> sum(static_cast<size_t>(leaves.shape().stride0()));
  const std::vector<double> values = doubles(leaves);
  for (size_t i = 0; i < values.size(); ++i) sum[i % sum.size()] += values[i];
  return sum;
}

// A sum taken one by one may lose half an ulp of its size at each of its terms; Winograd's
// algorithm, which 3x3 windows may get, scales terms up before it adds them.
testing::Tolerance sum_of(int64_t terms, const Conv2dSizes& z) {
  testing::Tolerance tolerance = testing::f32_sum(terms);
  tolerance.abs += 0x1p-24 * static_cast<double>(terms);
  if (z.r == 3 && z.stride_h == 1 && z.c >= 32 && z.k >= 32) tolerance.abs *= 4;
  return tolerance;
}

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

void expect_reference(const Results& got, const Problem& p) {
  const Conv2dSizes& z = p.z;
  const std::vector<double> in = doubles(p.in);
  const std::vector<double> weight = doubles(p.weight);
  const std::vector<double> grad_out = doubles(p.grad_out);
  EXPECT_TRUE(close(got.out.span<const float>(),
                    reference::conv2d_forward(in, weight, doubles(p.bias), z),
                    sum_of(z.c * z.r * z.s, z)));
  EXPECT_TRUE(close(got.grad_in.span<const float>(),
                    reference::conv2d_backward_data(grad_out, weight, z),
                    sum_of(z.k * z.r * z.s, z)));
  const int64_t pixels = z.n * z.oh() * z.ow();
  EXPECT_TRUE(close(floats(sum_of_rows(got.grad_weight)),
                    reference::conv2d_backward_weight(in, grad_out, z),
                    sum_of(pixels, z)));
  EXPECT_TRUE(close(floats(sum_of_rows(got.grad_bias)),
                    reference::conv2d_backward_bias(grad_out, z.k),
                    sum_of(pixels, z)));
}

class Conv2dCases : public ::testing::TestWithParam<Conv2dSizes> {};

TEST_P(Conv2dCases, MatchReferenceHoweverCut) {
  const Problem problem(GetParam());
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const int64_t shards : {1, 2, 3, 8}) {
      SCOPED_TRACE(fmt::format("{} threads, {} shards", threads, shards));
      expect_reference(run(stream, Shards::cut(problem.z.n, shards, 1), problem), problem);
    }
  }
}

TEST_P(Conv2dCases, ShardHasTheBitsOfItsOwnRun) {
  const Problem whole(GetParam());
  const Shards shards = Shards::cut(whole.z.n, 3, 1);
  Stream stream(Device::kCpu, 2);
  const Results together = run(stream, shards, whole);
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t first = shards.begin(k);
    const int64_t count = shards.count(k);
    Problem alone = whole;
    alone.z.n = count;
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

Conv2dSizes square(
    int64_t n, int64_t c, int64_t hw, int64_t k, int64_t rs, int64_t stride, int64_t pad) {
  return {n, c, hw, hw, k, rs, rs, stride, stride, pad, pad};
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         Conv2dCases,
                         ::testing::Values(square(5, 16, 6, 32, 1, 1, 0),
                                           square(5, 16, 7, 16, 1, 2, 0),
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
                                           square(3, 32, 23, 48, 3, 1, 1),  // Winograd
                                           square(4, 48, 14, 32, 3, 1, 1),  // in large shards
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
                           return fmt::format("in{}x{}x{}x{}_weight{}x{}x{}_stride{}x{}_pad{}x{}",
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
                                              z.pad_w);
                         });

TEST(Conv2d, WorkedExample) {
  Stream stream;
  Tensor in = Tensor::empty({1, 1, 3, 3}, Dtype::kF32);
  std::iota(in.data<float>(), in.data<float>() + 9, 1.0F);
  Tensor weight = Tensor::empty({1, 1, 2, 2}, Dtype::kF32);
  std::ranges::copy(std::initializer_list<float>{1, 10, 100, 1000}, weight.data<float>());
  Tensor out = sevens({1, 1, 2, 2});
  conv2d_forward(stream, Shards::single(1), in, weight, {}, {}, out);
  const std::vector<float> want = {5421, 6532, 8754, 9865};
  EXPECT_TRUE(close(out.span<const float>(), want, {}));
}

TEST(Conv2d, WithoutBias) {
  const Problem p(square(4, 5, 6, 7, 3, 1, 1));
  const Shards shards = Shards::cut(4, 2, 1);
  Stream stream(Device::kCpu, 2);
  const Results with = run(stream, shards, p);
  Tensor out = sevens(p.grad_out.shape());
  Tensor grad_weight = sevens(with.grad_weight.shape());
  Tensor no_grad_bias;
  conv2d_forward(stream, shards, p.in, p.weight, {}, params_of(p.z), out);
  conv2d_backward_weight(stream,
                         shards,
                         p.in,
                         p.grad_out,
                         p.weight.shape(),
                         params_of(p.z),
                         grad_weight,
                         no_grad_bias);
  EXPECT_TRUE(close(out.span<const float>(),
                    reference::conv2d_forward(doubles(p.in), doubles(p.weight), {}, p.z),
                    sum_of(45, p.z)));
  EXPECT_TRUE(close(
      grad_weight.span<const float>(), with.grad_weight.span<const float>(), sum_of(72, p.z)));
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
  const Conv2dSizes sizes = square(4, 3, 9, 5, 3, 1, 1);
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
  for (const Conv2dSizes& z : {sizes, strided, tall, padded, wide, flat, sizes}) {
    const Problem problem(z);
    expect_reference(run(stream, Shards::cut(z.n, 2, 1), problem), problem);
  }
}

TEST(Conv2d, WorkersDoNotShareScratch) {
  for (const Conv2dSizes& z : {square(48, 16, 16, 32, 1, 2, 0), square(48, 8, 12, 24, 3, 1, 1)}) {
    const Problem problem(z);
    const Shards shards = Shards::cut(z.n, 16, 1);
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
}

int64_t process_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// New threads start with OpenMP's own thread count, all cores, so each op gets a caller and a
// worker of its own.
TEST(Conv2d, OpenMpStartsNoThreads) {
  const Problem p(square(8, 16, 14, 32, 5, 1, 2));
  const Shards shards = Shards::cut(8, 2, 1);
  const Conv2dParams params = params_of(p.z);
  Results got{.out = sevens(p.grad_out.shape()),
              .grad_in = sevens(p.in.shape()),
              .grad_weight = sevens({2, p.weight.numel()}),
              .grad_bias = sevens({2, p.z.k})};
  const auto on_new_thread = [](const auto& op) {
    std::thread([&] {
      Stream stream(Device::kCpu, 2);
      const int64_t before = process_threads();
      op(stream);
      EXPECT_LE(process_threads(), before);
    }).join();
  };
  on_new_thread([&](Stream& stream) {
    conv2d_forward(stream, shards, p.in, p.weight, p.bias, params, got.out);
  });
  on_new_thread([&](Stream& stream) {
    conv2d_backward_data(stream, shards, p.grad_out, p.weight, params, got.grad_in);
  });
  on_new_thread([&](Stream& stream) {
    conv2d_backward_weight(
        stream, shards, p.in, p.grad_out, p.weight.shape(), params, got.grad_weight, got.grad_bias);
  });
  expect_reference(got, p);
}

// The library may multiply NaN by padding's zeros, which the reference leaves out, so more of the
// same shard may be NaN.
void expect_nans(const Tensor& got, const std::vector<double>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(!std::isnan(want[i]) || std::isnan(got.data<float>()[i])) << "element " << i;
  }
}

bool has_nan(const Tensor& tensor) {
  return std::ranges::any_of(tensor.span<const float>(), [](float x) { return std::isnan(x); });
}

TEST(Conv2d, NanReachesWhatDependsOnIt) {
  Problem p(square(2, 2, 5, 3, 3, 1, 1));
  p.in.data<float>()[24] = std::numeric_limits<float>::quiet_NaN();       // image 0, centre pixel
  p.grad_out.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();  // image 0, corner
  Stream stream(Device::kCpu, 2);
  const Results got = run(stream, Shards::cut(2, 2, 1), p);
  const std::vector<double> in = doubles(p.in);
  const std::vector<double> grad_out = doubles(p.grad_out);
  expect_nans(got.out, reference::conv2d_forward(in, doubles(p.weight), doubles(p.bias), p.z));
  expect_nans(got.grad_in, reference::conv2d_backward_data(grad_out, doubles(p.weight), p.z));
  expect_nans(got.grad_weight, reference::conv2d_backward_weight(in, grad_out, p.z));
  expect_nans(got.grad_bias, reference::conv2d_backward_bias(grad_out, p.z.k));
  EXPECT_FALSE(has_nan(got.out.slice(1, 1)));
  EXPECT_FALSE(has_nan(got.grad_in.slice(1, 1)));
  EXPECT_FALSE(has_nan(got.grad_weight.slice(1, 1)));
  EXPECT_FALSE(has_nan(got.grad_bias.slice(1, 1)));
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
    EXPECT_TRUE(close(floats(got), testing::numerical_gradient(f, at), {.rel = 1e-6, .abs = 1e-6}));
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
}  // namespace lockstep::kernels
