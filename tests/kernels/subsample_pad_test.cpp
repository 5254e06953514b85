#include "kernels/pool/subsample_pad.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"
#include "tests/support/subsample_case.h"

namespace lockstep::kernels::subsample_pad_test {
namespace {

using testing::close;
using testing::doubles;
using testing::floats_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::values_of;

using Case = testing::SubsampleCase;

class SubsamplePadCases : public ::testing::TestWithParam<Case> {};

TEST_P(SubsamplePadCases, MatchesReferenceOnAnyNumberOfThreadsAndLevel) {
  const Case& c = GetParam();
  const Shards shards = Shards::cut(c.in[0], 3, 1);  // some are empty
  for (const Dtype dtype : kFloatTypes) {
    Tensor in = rounded_to(dtype, random_tensor(c.in, 1));
    if (in.numel() > 0) testing::set(in, 0, std::numeric_limits<double>::quiet_NaN());
    const Tensor grad_out = rounded_to(dtype, random_tensor(c.out(), 2));
    const auto want_out = reference::subsample_pad_forward(values_of(in), c.geometry());
    const auto want_grad = reference::subsample_pad_backward(values_of(grad_out), c.geometry());
    for (const int threads : {1, 2, 4}) {
      Stream stream(Device::kCpu, threads);
      for (SubsamplePadForward* body : LS_ISA_BODIES(subsample_pad_forward)) {
        Tensor out = poisoned_tensor(c.out(), dtype);
        body(stream, shards, in, c.stride, out);
        EXPECT_TRUE(close(floats_of(out), want_out, {})) << name_of(dtype);
      }
      for (SubsamplePadBackward* body : LS_ISA_BODIES(subsample_pad_backward)) {
        Tensor grad_in = poisoned_tensor(c.in, dtype);
        body(stream, shards, grad_out, c.stride, grad_in);
        EXPECT_TRUE(close(floats_of(grad_in), want_grad, {})) << name_of(dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         SubsamplePadCases,
                         ::testing::Values(Case{{4, 16, 8, 8}, 32, 2},
                                           Case{{2, 3, 7, 5}, 9, 2},
                                           Case{{3, 2, 5, 7}, 2, 1},
                                           Case{{2, 1, 7, 6}, 5, 3},
                                           Case{{1, 4, 1, 1}, 8, 2},
                                           Case{{0, 4, 6, 6}, 8, 2},
                                           Case{{2, 0, 4, 4}, 4, 2}));

TEST(SubsamplePad, KnownValues) {
  Stream stream;
  Tensor in = Tensor::empty({1, 1, 3, 3}, Dtype::kF32);
  for (int i = 0; i < 9; ++i) in.data<float>()[i] = static_cast<float>(i + 1);
  Tensor out = poisoned_tensor({1, 3, 2, 2}, Dtype::kF32);
  subsample_pad_forward(stream, Shards::single(1), in, 2, out);
  const std::vector<double> want = {0, 1, 0, 0, 3, 0, 0, 7, 0, 0, 9, 0};
  EXPECT_TRUE(close(out.span<const float>(), want, {}));
}

TEST(SubsamplePad, ReferenceGradientIsTheDerivative) {
  const reference::SubsamplePadGeometry g{2, 2, 3, 4, 6, 2};
  const std::vector<double> in = doubles(random_tensor({2, 2, 3, 4}, 3));
  const std::vector<double> weights = doubles(random_tensor({2, 6, 2, 2}, 4));
  const auto f = [&](const std::vector<double>& x) {
    const auto out = reference::subsample_pad_forward(x, g);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
    return sum;
  };
  const auto gradient = reference::subsample_pad_backward(weights, g);
  const auto numerical = testing::numerical_gradient(f, in);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(gradient[i], numerical[i], 1e-8) << i;
}

TEST(SubsamplePad, RejectsOtherShapes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const auto f32 = [](const Shape& shape) { return Tensor::zeros(shape, Dtype::kF32); };
  const Tensor in = f32({2, 3, 4, 4});
  const auto forward = [&](const Shape& out_shape, int stride) {
    Tensor out = f32(out_shape);
    subsample_pad_forward(stream, shards, in, stride, out);
  };
  EXPECT_NO_THROW(forward({2, 5, 2, 2}, 2));
  EXPECT_THROW(forward({2, 5, 3, 2}, 2), ShapeError);
  EXPECT_THROW(forward({2, 5, 2, 2}, 0), ShapeError);
  EXPECT_THROW(forward({2, 1, 2, 2}, 2), ShapeError);
  EXPECT_THROW(forward({2, 5, 4}, 2), ShapeError);
  Tensor wrong = f32({2, 3, 5, 4});
  EXPECT_THROW(subsample_pad_backward(stream, shards, f32({2, 5, 2, 2}), 2, wrong), ShapeError);
  try {
    forward({2, 6, 2, 2}, 2);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[subsample_pad] required: in (N,C,H,W), stride >= 1, C channels and an even "
                 "number more; in (2,3,4,4), stride 2, 6 channels");
  }
}

TEST(SubsamplePad, RejectsOtherAndMixedDtypes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = Tensor::zeros({2, 3, 4, 4}, Dtype::kF16);
  Tensor other = Tensor::zeros({2, 5, 2, 2}, Dtype::kBF16);
  const Tensor integers = Tensor::zeros({2, 3, 4, 4}, Dtype::kI32);
  EXPECT_THROW(subsample_pad_forward(stream, shards, in, 2, other), DtypeError);
  EXPECT_THROW(subsample_pad_forward(stream, shards, integers, 2, other), DtypeError);
}

TEST(SubsamplePad, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor in = Tensor::empty({2, 3, 4, 4}, Dtype::kF32, Device::kDry);
  Tensor out = Tensor::empty({2, 5, 2, 2}, Dtype::kF32, Device::kDry);
  subsample_pad_forward(stream, Shards::single(2), in, 2, out);
  subsample_pad_backward(stream, Shards::single(2), out, 2, in);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 384 + 160);
  EXPECT_EQ(stream.ledger()[1].bytes, 384 + 160);
}

}  // namespace
}  // namespace lockstep::kernels::subsample_pad_test
