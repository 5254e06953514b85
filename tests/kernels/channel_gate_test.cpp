#include "kernels/elementwise/channel_gate.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/channel_gate_case.h"
#include "tests/support/close_sum.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::channel_gate_test {
namespace {

using testing::ChannelGateCase;
using testing::close;
using testing::close_sum;
using testing::floats_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;

constexpr GateForm kHard = GateForm::kHardSigmoid;

class ChannelGate : public ::testing::TestWithParam<std::tuple<GateForm, Shape>> {
 protected:
  ChannelGateCase gating(Dtype dtype) const {
    const auto& [form, shape] = GetParam();
    return {shape, dtype, form};
  }
};

TEST_P(ChannelGate, MatchesReferenceOnAnyNumberOfThreads) {
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const ChannelGateCase gating = this->gating(dtype);
    const auto want = gating.reference_gradients();
    ChannelGateCase::Results first;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      const auto got = gating.run(stream);
      EXPECT_TRUE(close_sum(got.out, gating.reference_out(), 1));
      EXPECT_TRUE(close_sum(got.grad_in, want.in, 1));
      EXPECT_TRUE(close_sum(got.grad_gate, want.gate, gating.pixels()));
      if (threads == 1) first = got;
      EXPECT_TRUE(same_bits(got.out, first.out)) << threads << " threads";
      EXPECT_TRUE(same_bits(got.grad_in, first.grad_in)) << threads << " threads";
      EXPECT_TRUE(same_bits(got.grad_gate, first.grad_gate)) << threads << " threads";
    }
  }
}

TEST_P(ChannelGate, SixteenBitsAreF32Rounded) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const ChannelGateCase gating = this->gating(dtype);
    const auto got = gating.run(stream);
    const auto want = gating.widened().run(stream);
    EXPECT_TRUE(same_bits(got.out, rounded_to(dtype, want.out)));
    EXPECT_TRUE(same_bits(got.grad_in, rounded_to(dtype, want.grad_in)));
    EXPECT_TRUE(same_bits(got.grad_gate, rounded_to(dtype, want.grad_gate)));
  }
}

TEST_P(ChannelGate, InstructionSetsAgree) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const ChannelGateCase gating = this->gating(dtype);
    const auto want = gating.run(stream);
    for (ChannelGateForward* body : LS_ISA_BODIES(channel_gate_forward)) {
      EXPECT_TRUE(same_bits(gating.run(stream, body).out, want.out));
    }
    for (ChannelGateBackward* body : LS_ISA_BODIES(channel_gate_backward)) {
      const auto got = gating.run(stream, channel_gate_forward, body);
      EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
      EXPECT_TRUE(same_bits(got.grad_gate, want.grad_gate));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         ChannelGate,
                         ::testing::Combine(::testing::ValuesIn(testing::kGateForms),
                                            ::testing::ValuesIn(testing::kGatedShapes)));

void expect_derivative(reference::GateOf* form) {
  const reference::GateSizes sizes{2, 3, 4};
  const std::vector<double> in = testing::doubles(testing::random_tensor({2, 3, 2, 2}, 3));
  const std::vector<double> gate = {-3.5, -2.5, 0, 1.25, 2.5, 3.5};
  const std::vector<double> weights = testing::doubles(testing::random_tensor({2, 3, 2, 2}, 4));
  const auto loss = [&](const std::vector<double>& x, const std::vector<double>& g) {
    const auto out = reference::channel_gate_forward(x, g, sizes, form);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
    return sum;
  };
  const auto got = reference::channel_gate_backward(weights, in, gate, sizes, form);
  const auto of_in = testing::numerical_gradient([&](const auto& x) { return loss(x, gate); }, in);
  const auto of_gate =
      testing::numerical_gradient([&](const auto& g) { return loss(in, g); }, gate);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(got.in[i], of_in[i], 1e-8) << i;
  for (size_t i = 0; i < gate.size(); ++i) EXPECT_NEAR(got.gate[i], of_gate[i], 1e-8) << i;
}

TEST(ChannelGateReference, GradientIsTheDerivative) {
  expect_derivative(reference::hard_gate);
  expect_derivative(reference::sigmoid_gate);
}

// Gates: closed, ends of the slope, open, NaN; images of one, NaN and infinity.
TEST(ChannelGateSpecial, NanInfinityAndTheEndsOfTheSlope) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor gate = tensor_of(std::vector{-4.0, -3.0, 3.0, kInf, kNan, 0.0}, {1, 6}, dtype);
    const auto image = [&](double value) {
      return tensor_of(std::vector<double>(6, value), {1, 6, 1, 1}, dtype);
    };
    const auto expect =
        [&](double in, const std::vector<double>& want, const std::vector<double>& want_gate) {
          Tensor out = poisoned_tensor({1, 6, 1, 1}, dtype);
          Tensor grad_in = poisoned_tensor({1, 6, 1, 1}, dtype);
          Tensor grad_gate = poisoned_tensor({1, 6}, dtype);
          channel_gate_forward(stream, Shards::single(1), image(in), gate, kHard, out);
          channel_gate_backward(
              stream, Shards::single(1), {image(1), image(in), gate, kHard, grad_in, grad_gate});
          EXPECT_TRUE(close(floats_of(out), want, {}));
          EXPECT_TRUE(close(floats_of(grad_in), std::vector<double>{0, 0, 1, 1, kNan, 0.5}, {}));
          EXPECT_TRUE(close(floats_of(grad_gate), want_gate, {}));
        };
    expect(6, {0, 0, 6, 6, kNan, 3}, {0, 0, 0, 0, 0, 1});
    expect(kNan, std::vector<double>(6, kNan), {0, 0, 0, 0, 0, kNan});
    expect(kInf, {kNan, kNan, kInf, kInf, kNan, kInf}, {0, 0, 0, 0, 0, kInf});
  }
}

// A sigmoid keeps its digits far below zero, and is 0 or 1 at the ends of what a float holds.
TEST(ChannelGateSpecial, SigmoidFarFromZero) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Stream stream;
  const std::vector<double> gates = {-kInf, -85, -80, -20, 20, kInf, kNan};
  const Tensor gate = tensor_of(gates, {1, 7}, Dtype::kF32);
  const Tensor one = tensor_of(std::vector<double>(7, 1), {1, 7, 1, 1}, Dtype::kF32);
  Tensor out = poisoned_tensor({1, 7, 1, 1}, Dtype::kF32);
  Tensor grad_in = poisoned_tensor({1, 7, 1, 1}, Dtype::kF32);
  Tensor grad_gate = poisoned_tensor({1, 7}, Dtype::kF32);
  channel_gate_forward(stream, Shards::single(1), one, gate, GateForm::kSigmoid, out);
  channel_gate_backward(
      stream, Shards::single(1), {one, one, gate, GateForm::kSigmoid, grad_in, grad_gate});
  const double low = std::exp(-80.0), small = 1 / (1 + std::exp(20.0));
  const std::vector<double> want = {0, 0, low, small, 1 - small, 1, kNan};
  EXPECT_TRUE(close(floats_of(out), want, {.rel = 5e-7}));
  EXPECT_TRUE(close(floats_of(grad_in), want, {.rel = 5e-7}));
  EXPECT_TRUE(close(
      floats_of(grad_gate), std::vector<double>{0, 0, low, small, small, 0, kNan}, {.rel = 5e-7}));
}

TEST(ChannelGateSpecial, SumsAreF32) {
  Stream stream;
  const Tensor in = tensor_of(std::vector<double>(6, 49152), {1, 1, 2, 3}, Dtype::kF16);
  const Tensor grad_out = tensor_of(std::vector<double>(6, 1), {1, 1, 2, 3}, Dtype::kF16);
  const Tensor gate = Tensor::zeros({1, 1}, Dtype::kF16);
  Tensor grad_in = poisoned_tensor({1, 1, 2, 3}, Dtype::kF16);
  Tensor grad_gate = poisoned_tensor({1, 1}, Dtype::kF16);
  channel_gate_backward(stream, Shards::single(1), {grad_out, in, gate, kHard, grad_in, grad_gate});
  EXPECT_EQ(testing::get(grad_gate, 0), 49152);
}

TEST(ChannelGateSpecial, RejectsOtherShapes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = Tensor::zeros({2, 3, 4, 4}, Dtype::kF32);
  const Tensor gate = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor out = Tensor::zeros({2, 3, 4, 4}, Dtype::kF32);
  Tensor small = Tensor::zeros({2, 3, 4, 3}, Dtype::kF32);
  Tensor grad_gate = Tensor::zeros({3, 2}, Dtype::kF32);
  EXPECT_THROW(channel_gate_forward(stream, shards, in, gate, kHard, small), ShapeError);
  EXPECT_THROW(channel_gate_forward(stream, shards, in, grad_gate, kHard, out), ShapeError);
  EXPECT_THROW(channel_gate_forward(stream, Shards::single(1), in, gate, kHard, out), ShapeError);
  const Tensor other = Tensor::zeros({2, 3}, Dtype::kBF16);
  EXPECT_THROW(channel_gate_forward(stream, shards, in, other, kHard, out), DtypeError);
  EXPECT_THROW(channel_gate_backward(stream, shards, {in, in, gate, kHard, out, grad_gate}),
               ShapeError);
}

TEST(ChannelGateSpecial, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Shards shards = Shards::single(2);
  Tensor image = Tensor::empty({2, 3, 4, 4}, Dtype::kF32, Device::kDry);
  Tensor gate = Tensor::empty({2, 3}, Dtype::kF32, Device::kDry);
  channel_gate_forward(stream, shards, image, gate, kHard, image);
  channel_gate_backward(stream, shards, {image, image, gate, kHard, image, gate});
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 2 * 384 + 24);
  EXPECT_EQ(stream.ledger()[1].bytes, 3 * 384 + 2 * 24);
}

}  // namespace
}  // namespace lockstep::kernels::channel_gate_test
