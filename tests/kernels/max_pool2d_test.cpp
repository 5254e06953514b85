#include "kernels/pool/max_pool2d.h"

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/max_pool2d.h"
#include "tests/support/close.h"
#include "tests/support/close_sum.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::max_pool2d_test {
namespace {

using testing::close;
using testing::doubles;
using testing::floats_of;
using testing::get;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;
using testing::set;
using testing::values_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr MaxPool2dParams k2x2 = {2, 2, 2, 2, 0, 0};
constexpr MaxPool2dParams k3x3 = {3, 3, 2, 2, 1, 1};

struct Pooled {
  Tensor out, winner;
};

Pooled pool(Stream& stream, const Shards& shards, const Tensor& in, const MaxPool2dParams& params) {
  const Shape shape = max_pool2d_output_shape(in.shape(), params);
  Pooled pooled{poisoned_tensor(shape, in.dtype()), poisoned_tensor(shape, Dtype::kU8)};
  max_pool2d_forward(stream, shards, in, params, pooled.out, pooled.winner);
  return pooled;
}

reference::MaxPool2dShape reference_shape(const Shape& in, const MaxPool2dParams& p) {
  return {.n = in[0],
          .c = in[1],
          .h = in[2],
          .w = in[3],
          .kernel_h = p.kernel_h,
          .kernel_w = p.kernel_w,
          .stride_h = p.stride_h,
          .stride_w = p.stride_w,
          .pad_h = p.pad_h,
          .pad_w = p.pad_w};
}

std::vector<uint8_t> bytes(const Tensor& tensor) {
  const auto values = tensor.span<const uint8_t>();
  return {values.begin(), values.end()};
}

struct Geometry {
  Shape in;
  MaxPool2dParams params;

  friend void PrintTo(const Geometry& g, std::ostream* out) {  // NOLINT: GoogleTest's name
    const MaxPool2dParams& p = g.params;
    *out << to_string(g.in) << " kernel " << p.kernel_h << "x" << p.kernel_w << " stride "
         << p.stride_h << "x" << p.stride_w << " pad " << p.pad_h << "x" << p.pad_w;
  }
};

// With ties, NaN, infinities and denormals.
Tensor awkward_tensor(const Shape& shape, uint64_t seed) {
  Tensor tensor = random_tensor(shape, seed);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    float& value = tensor.data<float>()[i];
    if (i % 3 == 1) value = static_cast<float>(i % 5) - 2;
    if (i % 13 == 5) value = kNan;
    if (i % 11 == 7) value = i % 4 == 0 ? kInf : -kInf;
    if (i % 7 == 3) value *= 0x1p-20F;
  }
  return tensor;
}

class MaxPool2dGeometries : public ::testing::TestWithParam<Geometry> {};

TEST_P(MaxPool2dGeometries, MatchesReference) {
  const auto& [shape, params] = GetParam();
  const auto spec = reference_shape(shape, params);
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor in = rounded_to(dtype, random_tensor(shape, 1));
    const Tensor grad_out =
        rounded_to(dtype, random_tensor(max_pool2d_output_shape(shape, params), 2));
    const auto want = reference::max_pool2d_forward(spec, values_of(in));
    const auto want_grad = reference::max_pool2d_backward(spec, values_of(grad_out), want.winner);
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      const Shards shards = Shards::cut(shape[0], 2, 1);
      const Pooled got = pool(stream, shards, in, params);
      EXPECT_TRUE(close(floats_of(got.out), want.out, {})) << threads << " threads";
      EXPECT_EQ(bytes(got.winner), want.winner) << threads << " threads";
      Tensor grad_in = poisoned_tensor(shape, dtype);
      max_pool2d_backward(stream, shards, grad_out, got.winner, params, grad_in);
      EXPECT_TRUE(testing::close_sum(grad_in, want_grad, 9)) << threads << " threads";
    }
  }
}

TEST_P(MaxPool2dGeometries, SixteenBitsAreF32Rounded) {
  const auto& [shape, params] = GetParam();
  const Shape pooled = max_pool2d_output_shape(shape, params);
  const Shards shards = Shards::single(shape[0]);
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const Tensor in = rounded_to(dtype, awkward_tensor(shape, 3));
    const Tensor grad_out = rounded_to(dtype, awkward_tensor(pooled, 4));
    const Pooled got = pool(stream, shards, in, params);
    const Pooled want = pool(stream, shards, rounded_to(Dtype::kF32, in), params);
    EXPECT_TRUE(same_bits_or_nan(got.out, rounded_to(dtype, want.out)));
    EXPECT_TRUE(same_bits(got.winner, want.winner));
    Tensor grad_in = poisoned_tensor(shape, dtype);
    Tensor want_grad = poisoned_tensor(shape, Dtype::kF32);
    max_pool2d_backward(stream, shards, grad_out, got.winner, params, grad_in);
    max_pool2d_backward(
        stream, shards, rounded_to(Dtype::kF32, grad_out), got.winner, params, want_grad);
    EXPECT_TRUE(same_bits_or_nan(grad_in, rounded_to(dtype, want_grad)));
  }
}
INSTANTIATE_TEST_SUITE_P(
    Cases,
    MaxPool2dGeometries,
    ::testing::Values(Geometry{{5, 16, 8, 6}, k2x2},                    // tiled
                      Geometry{{3, 33, 5, 7}, k2x2},                    // a row and a column left
                      Geometry{{2, 3, 4, 4}, k2x2},                     // fewer channels than lanes
                      Geometry{{2, 40, 9, 8}, k3x3},                    // overlap
                      Geometry{{2, 17, 1, 1}, k3x3},                    // one pixel
                      Geometry{{2, 1, 7, 5}, k3x3},                     //
                      Geometry{{2, 20, 4, 6}, {3, 3, 1, 1, 1, 1}},      //
                      Geometry{{1, 16, 4, 7}, {2, 3, 1, 2, 0, 1}},      // not square
                      Geometry{{1, 18, 7, 9}, {2, 2, 3, 4, 1, 0}},      // gaps between windows
                      Geometry{{1, 16, 6, 6}, {3, 3, 3, 3, 1, 1}},      // disjoint with padding
                      Geometry{{1, 2, 6, 7}, {1, 1, 1, 1, 0, 0}},       //
                      Geometry{{1, 16, 20, 18}, {16, 16, 1, 1, 0, 8}},  // 256 taps
                      Geometry{{0, 16, 4, 4}, k2x2},                    // no images
                      Geometry{{2, 0, 4, 4}, k3x3},
                      Geometry{{2, 0, 5, 5}, k2x2}));  // no channels

TEST(MaxPool2d, ReferenceGradientIsTheDerivative) {
  const auto spec = reference_shape({1, 2, 5, 5}, k3x3);
  const std::vector<double> in = doubles(random_tensor({1, 2, 5, 5}, 3));
  const std::vector<double> weights = doubles(random_tensor({1, 2, 3, 3}, 4));
  const auto f = [&](const std::vector<double>& x) {
    const auto out = reference::max_pool2d_forward(spec, x).out;
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
    return sum;
  };
  const auto winner = reference::max_pool2d_forward(spec, in).winner;
  const std::vector<double> gradient = reference::max_pool2d_backward(spec, weights, winner);
  const std::vector<double> numerical = testing::numerical_gradient(f, in);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(gradient[i], numerical[i], 1e-8) << i;
}

using Window = std::tuple<int64_t, Dtype>;  // channels

// One 2x2 window of `channels` equal channels, so that vectors and single lanes are both met.
Pooled pool_window(const std::array<float, 4>& taps, const Window& window) {
  const auto [channels, dtype] = window;
  Tensor in = Tensor::empty({1, channels, 2, 2}, dtype);
  for (int64_t i = 0; i < in.numel(); ++i) set(in, i, taps[static_cast<size_t>(i / channels)]);
  Stream stream;
  return pool(stream, Shards::single(1), in, k2x2);
}

class MaxPool2dWindow : public ::testing::TestWithParam<Window> {};

TEST_P(MaxPool2dWindow, FirstOfEqualValuesWins) {
  EXPECT_EQ(*pool_window({1, 2, 2, 1}, GetParam()).winner.data<uint8_t>(), 1);
  const Pooled zeros = pool_window({-0.0F, 0.0F, 0.0F, -0.0F}, GetParam());
  EXPECT_EQ(*zeros.winner.data<uint8_t>(), 0);
  EXPECT_TRUE(std::signbit(get(zeros.out, 0)));
}

TEST_P(MaxPool2dWindow, NanWinsAndOfSeveralTheLast) {
  const Pooled one = pool_window({1, kNan, kInf, 3}, GetParam());
  EXPECT_TRUE(std::isnan(get(one.out, 0)));
  EXPECT_EQ(*one.winner.data<uint8_t>(), 1);
  EXPECT_EQ(*pool_window({kNan, 1, kNan, 3}, GetParam()).winner.data<uint8_t>(), 2);
}

TEST_P(MaxPool2dWindow, AllMinusInfinityIsWonByTheFirstTap) {
  const Pooled pooled = pool_window({-kInf, -kInf, -kInf, -kInf}, GetParam());
  EXPECT_EQ(get(pooled.out, 0), -kInf);
  EXPECT_EQ(*pooled.winner.data<uint8_t>(), 0);
}

TEST_P(MaxPool2dWindow, PaddingNeverWins) {
  Stream stream;
  for (const float value : {-5.0F, -kInf}) {
    const auto [channels, dtype] = GetParam();
    Tensor in = Tensor::empty({1, channels, 2, 2}, dtype);
    for (int64_t i = 0; i < in.numel(); ++i) set(in, i, value);
    const Pooled pooled = pool(stream, Shards::single(1), in, k3x3);
    EXPECT_EQ(get(pooled.out, 0), value);
    EXPECT_EQ(*pooled.winner.data<uint8_t>(), 4) << "the first tap inside the image";
  }
}
INSTANTIATE_TEST_SUITE_P(Channels,
                         MaxPool2dWindow,
                         ::testing::Combine(::testing::Values(1, 19),
                                            ::testing::ValuesIn(kFloatTypes)));

TEST(MaxPool2d, OverlappingGradientsAddInRowMajorOrderOfOutputs) {
  Stream stream;
  constexpr MaxPool2dParams kDense = {3, 3, 1, 1, 1, 1};
  for (const int64_t channels : {1, 16}) {
    Tensor grad_out = Tensor::empty({1, channels, 3, 3}, Dtype::kF32);
    Tensor winner = Tensor::empty({1, channels, 3, 3}, Dtype::kU8);
    constexpr std::array<float, 9> kGrads = {1e8F, 1, -1e8F, 3, 1e8F, 5, -1e8F, 7, 1e-8F};
    float want = 0;  // the center is tap 8 - o of output o, and wins all nine windows
    for (int64_t o = 0; o < 9; ++o) {
      want += kGrads[static_cast<size_t>(o)];
      for (int64_t c = 0; c < channels; ++c) {
        grad_out.data<float>()[o * channels + c] = kGrads[static_cast<size_t>(o)];
        winner.data<uint8_t>()[o * channels + c] = static_cast<uint8_t>(8 - o);
      }
    }
    Tensor grad_in = poisoned_tensor(grad_out.shape(), Dtype::kF32);
    max_pool2d_backward(stream, Shards::single(1), grad_out, winner, kDense, grad_in);
    EXPECT_EQ(grad_in.data<float>()[4 * channels], want);
    EXPECT_EQ(grad_in.data<float>()[0], 0);
  }
}

void expect_same_on_every_level(const Tensor& in, const MaxPool2dParams& params) {
  Stream stream;
  const Shards shards = Shards::single(in.shape()[0]);
  const Dtype dtype = in.dtype();
  const Pooled want = pool(stream, shards, in, params);
  const Tensor grad_out = rounded_to(dtype, random_tensor(want.out.shape(), 6));
  Tensor want_grad = poisoned_tensor(in.shape(), dtype);
  max_pool2d_backward(stream, shards, grad_out, want.winner, params, want_grad);
  for (MaxPool2dForward* body : LS_ISA_BODIES(max_pool2d_forward)) {
    Pooled got{poisoned_tensor(want.out.shape(), dtype),
               poisoned_tensor(want.out.shape(), Dtype::kU8)};
    body(stream, shards, in, params, got.out, got.winner);
    EXPECT_TRUE(same_bits(got.out, want.out));
    EXPECT_TRUE(same_bits(got.winner, want.winner));
  }
  for (MaxPool2dBackward* body : LS_ISA_BODIES(max_pool2d_backward)) {
    Tensor got = poisoned_tensor(in.shape(), dtype);
    body(stream, shards, grad_out, want.winner, params, got);
    EXPECT_TRUE(same_bits(got, want_grad));
  }
}

TEST(MaxPool2d, InstructionSetsAgree) {
  for (const MaxPool2dParams& params : {k2x2, k3x3, MaxPool2dParams{3, 2, 1, 2, 1, 0}}) {
    for (const Dtype dtype : kFloatTypes) {
      SCOPED_TRACE(name_of(dtype));
      expect_same_on_every_level(rounded_to(dtype, awkward_tensor({2, 37, 9, 10}, 5)), params);
    }
  }
}

TEST(MaxPool2d, RejectsWindowsThatMakeNoSense) {
  const Shape in = {1, 1, 4, 4};
  EXPECT_EQ(max_pool2d_output_shape(in, k3x3), (Shape{1, 1, 2, 2}));
  for (const MaxPool2dParams& bad : {MaxPool2dParams{0, 2, 2, 2, 0, 0},
                                     MaxPool2dParams{2, 2, 0, 2, 0, 0},
                                     MaxPool2dParams{257, 1, 1, 1, 128, 0},
                                     MaxPool2dParams{3, 3, 1, 1, 2, 0},
                                     MaxPool2dParams{3, 3, 1, 1, 0, -1},
                                     MaxPool2dParams{5, 2, 1, 1, 0, 0}}) {
    EXPECT_THROW(max_pool2d_output_shape(in, bad), ShapeError);
  }
  EXPECT_THROW(max_pool2d_output_shape({4, 4}, k2x2), ShapeError);
  try {
    max_pool2d_output_shape({1, 1, 2, 4}, {3, 3, 1, 1, 0, 0});
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[max_pool2d] window: got in (1,1,2,4), kernel (3,3), stride (1,1), pad (0,0), "
                 "expected an image that holds a window");
  }
}

TEST(MaxPool2d, RejectsOtherShapesAndDtypes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = Tensor::zeros({2, 3, 4, 4}, Dtype::kF32);
  Tensor out = Tensor::zeros({2, 3, 2, 2}, Dtype::kF32);
  Tensor winner = Tensor::zeros({2, 3, 2, 2}, Dtype::kU8);
  Tensor wrong = Tensor::zeros({2, 3, 2, 1}, Dtype::kF32);
  Tensor halves = Tensor::zeros({2, 3, 4, 4}, Dtype::kF16);
  EXPECT_THROW(max_pool2d_forward(stream, shards, in, k2x2, wrong, winner), ShapeError);
  EXPECT_THROW(max_pool2d_forward(stream, shards, in, k2x2, out, out), DtypeError);
  EXPECT_THROW(max_pool2d_forward(stream, shards, halves, k2x2, out, winner), DtypeError);
  EXPECT_THROW(max_pool2d_forward(stream, Shards::single(3), in, k2x2, out, winner), ShapeError);
  EXPECT_THROW(max_pool2d_backward(stream, shards, wrong, winner, k2x2, halves), DtypeError);
  EXPECT_THROW(max_pool2d_backward(stream, shards, out, winner, k2x2, out), ShapeError);
}

TEST(MaxPool2d, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Shards shards = Shards::single(2);
  Tensor in = Tensor::empty({2, 3, 4, 4}, Dtype::kF32, Device::kDry);
  Tensor out = Tensor::empty({2, 3, 2, 2}, Dtype::kF32, Device::kDry);
  Tensor winner = Tensor::empty({2, 3, 2, 2}, Dtype::kU8, Device::kDry);
  max_pool2d_forward(stream, shards, in, k2x2, out, winner);
  max_pool2d_backward(stream, shards, out, winner, k2x2, in);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].op, "max_pool2d_forward");
  EXPECT_EQ(stream.ledger()[0].flops, 96);
  EXPECT_EQ(stream.ledger()[0].bytes, 384 + 96 + 24);
  EXPECT_EQ(stream.ledger()[1].op, "max_pool2d_backward");
  EXPECT_EQ(stream.ledger()[1].bytes, 384 + 96 + 24);
}

}  // namespace
}  // namespace lockstep::kernels::max_pool2d_test
