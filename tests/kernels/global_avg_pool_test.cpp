#include "tests/reference/global_avg_pool.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/pool/avg_pool2d.h"
#include "tests/support/close.h"
#include "tests/support/close_sum.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::global_avg_pool_test {
namespace {

using testing::close;
using testing::close_sum;
using testing::doubles;
using testing::floats_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

class GlobalAvgPoolShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(GlobalAvgPoolShapes, MatchesReferenceOnAnyNumberOfThreads) {
  const Shape& shape = GetParam();
  const auto images = static_cast<size_t>(shape[0]);
  const auto channels = static_cast<size_t>(shape[1]);
  const auto pixels = static_cast<size_t>(shape[2] * shape[3]);
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor in = rounded_to(dtype, random_tensor(shape, 1));
    const Tensor grad_out = rounded_to(dtype, random_tensor({shape[0], shape[1]}, 2));
    const auto want = reference::global_avg_pool_forward(values_of(in), images, channels, pixels);
    const auto want_grad =
        reference::global_avg_pool_backward(values_of(grad_out), images, channels, pixels);
    Tensor first_out;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      const Shards shards = Shards::cut(shape[0], 2, 1);
      Tensor out = poisoned_tensor({shape[0], shape[1]}, dtype);
      Tensor grad_in = poisoned_tensor(shape, dtype);
      global_avg_pool_forward(stream, shards, in, out);
      global_avg_pool_backward(stream, shards, grad_out, grad_in);
      EXPECT_TRUE(close_sum(out, want, static_cast<int64_t>(pixels)));
      EXPECT_TRUE(close_sum(grad_in, want_grad, 1));
      if (threads == 1) first_out = out;
      EXPECT_TRUE(same_bits(out, first_out)) << threads << " threads";
    }
  }
}

TEST_P(GlobalAvgPoolShapes, SixteenBitsAreF32Rounded) {
  const Shape& shape = GetParam();
  const Shape means{shape[0], shape[1]};
  const Shards shards = Shards::cut(shape[0], 2, 1);
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const auto run = [&](const Tensor& in, const Tensor& grad_out) {
      Tensor out = poisoned_tensor(means, in.dtype());
      Tensor grad_in = poisoned_tensor(shape, in.dtype());
      global_avg_pool_forward(stream, shards, in, out);
      global_avg_pool_backward(stream, shards, grad_out, grad_in);
      return std::pair(out, grad_in);
    };
    const Tensor in = rounded_to(dtype, random_tensor(shape, 3));
    const Tensor grad_out = rounded_to(dtype, random_tensor(means, 4));
    const auto [out, grad_in] = run(in, grad_out);
    const auto [want, want_grad] =
        run(rounded_to(Dtype::kF32, in), rounded_to(Dtype::kF32, grad_out));
    EXPECT_TRUE(same_bits(out, rounded_to(dtype, want)));
    EXPECT_TRUE(same_bits(grad_in, rounded_to(dtype, want_grad)));
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         GlobalAvgPoolShapes,
                         ::testing::Values(Shape{3, 5, 1, 1},
                                           Shape{2, 1, 4, 2},
                                           Shape{5, 33, 7, 7},
                                           Shape{1, 2064, 2, 1},  // more than at once
                                           Shape{2, 1027, 3, 3},
                                           Shape{0, 4, 2, 2},
                                           Shape{2, 0, 2, 2}));

TEST(GlobalAvgPool, ReferenceGradientIsTheDerivative) {
  const std::vector<double> in = doubles(random_tensor({2, 3, 2, 2}, 3));
  const std::vector<double> weights = doubles(random_tensor({2, 3}, 4));
  const auto f = [&](const std::vector<double>& x) {
    const auto out = reference::global_avg_pool_forward(x, 2, 3, 4);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
    return sum;
  };
  const auto gradient = reference::global_avg_pool_backward(weights, 2, 3, 4);
  const auto numerical = testing::numerical_gradient(f, in);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(gradient[i], numerical[i], 1e-8) << i;
}

TEST(GlobalAvgPool, SumsInRowMajorOrderOfPixels) {
  Stream stream;
  constexpr std::array<float, 4> kPixels = {1e8F, 1, -1e8F, 1};  // 1 in this order, else 0 or 2
  for (const int64_t channels : {1, 16}) {
    Tensor in = Tensor::empty({1, channels, 2, 2}, Dtype::kF32);
    for (int64_t i = 0; i < in.numel(); ++i) {
      in.data<float>()[i] = kPixels[static_cast<size_t>(i / channels)];
    }
    Tensor out = poisoned_tensor({1, channels}, Dtype::kF32);
    global_avg_pool_forward(stream, Shards::single(1), in, out);
    EXPECT_EQ(*out.data<float>(), 0.25F);
  }
}

// Within f16's range are the images and their means, but not their sums.
TEST(GlobalAvgPool, SumsAreF32) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    for (const int64_t channels : {1, 16, 21}) {
      const Tensor in =
          testing::tensor_of(std::vector<double>(static_cast<size_t>(6 * channels), 49152),
                             {1, channels, 2, 3},
                             dtype);
      Tensor out = poisoned_tensor({1, channels}, dtype);
      global_avg_pool_forward(stream, Shards::single(1), in, out);
      for (const double mean : values_of(out)) EXPECT_EQ(mean, 49152) << name_of(dtype);
    }
  }
}

// Vectors read on into the next pixel, whose values stay out of the sums.
TEST(GlobalAvgPool, NanAndInfinityStayInTheirChannelAndImage) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    Tensor in = Tensor::zeros({3, 5, 2, 2}, dtype);
    testing::set(in, 20 + 5 + 2, std::numeric_limits<double>::quiet_NaN());
    testing::set(in, 20 + 15 + 4, std::numeric_limits<double>::infinity());
    Tensor out = poisoned_tensor({3, 5}, dtype);
    global_avg_pool_forward(stream, Shards::single(3), in, out);
    std::vector<double> want(15, 0);
    want[5 + 2] = std::numeric_limits<double>::quiet_NaN();
    want[5 + 4] = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(close(floats_of(out), want, {})) << name_of(dtype);
  }
}

TEST(GlobalAvgPool, InstructionSetsAgree) {
  Stream stream;
  const Shards shards = Shards::single(2);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor({2, 37, 7, 7}, 5));
    const Tensor grad_out = rounded_to(dtype, random_tensor({2, 37}, 6));
    Tensor want = poisoned_tensor({2, 37}, dtype);
    Tensor want_grad = poisoned_tensor(in.shape(), dtype);
    global_avg_pool_forward(stream, shards, in, want);
    global_avg_pool_backward(stream, shards, grad_out, want_grad);
    for (AvgPool2dForward* body : LS_ISA_BODIES(global_avg_pool_forward)) {
      Tensor got = poisoned_tensor(want.shape(), dtype);
      body(stream, shards, in, got);
      EXPECT_TRUE(same_bits(got, want));
    }
    for (AvgPool2dBackward* body : LS_ISA_BODIES(global_avg_pool_backward)) {
      Tensor got = poisoned_tensor(in.shape(), dtype);
      body(stream, shards, grad_out, got);
      EXPECT_TRUE(same_bits(got, want_grad));
    }
  }
}

TEST(GlobalAvgPool, RejectsOtherShapes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = Tensor::zeros({2, 3, 4, 4}, Dtype::kF32);
  Tensor wrong = Tensor::zeros({2, 4}, Dtype::kF32);
  const Tensor no_pixels = Tensor::zeros({2, 3, 0, 4}, Dtype::kF32);
  Tensor out = Tensor::zeros({2, 3}, Dtype::kF32);
  EXPECT_THROW(global_avg_pool_forward(stream, shards, in, wrong), ShapeError);
  EXPECT_THROW(global_avg_pool_forward(stream, Shards::single(1), in, out), ShapeError);
  EXPECT_THROW(global_avg_pool_backward(stream, shards, out, wrong), ShapeError);
  try {
    global_avg_pool_forward(stream, shards, no_pixels, out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[global_avg_pool_forward] required: an image of at least one pixel");
  }
}

TEST(GlobalAvgPool, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Shards shards = Shards::single(2);
  Tensor in = Tensor::empty({2, 3, 4, 4}, Dtype::kF32, Device::kDry);
  Tensor out = Tensor::empty({2, 3}, Dtype::kF32, Device::kDry);
  global_avg_pool_forward(stream, shards, in, out);
  global_avg_pool_backward(stream, shards, out, in);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 384 + 24);
  EXPECT_EQ(stream.ledger()[0].flops, 96 + 6);
  EXPECT_EQ(stream.ledger()[1].bytes, 384 + 24);
}

}  // namespace
}  // namespace lockstep::kernels::global_avg_pool_test
