#include "kernels/elementwise/relu.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/relu.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::relu_test {
namespace {

using testing::close;
using testing::doubles;
using testing::floats_of;
using testing::kFloatTypes;
using testing::numerical_gradient;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class ReluSizes : public ::testing::TestWithParam<int64_t> {};

TEST_P(ReluSizes, MatchesReference) {
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const Dtype dtype : kFloatTypes) {
      const Tensor in = rounded_to(dtype, random_tensor({GetParam()}, 1));
      const Tensor grad_out = rounded_to(dtype, random_tensor({GetParam()}, 2));
      Tensor out = poisoned_tensor(in.shape(), dtype);
      Tensor grad_in = poisoned_tensor(in.shape(), dtype);
      relu_forward(stream, in, out);
      relu_backward(stream, out, grad_out, grad_in);
      EXPECT_TRUE(close(floats_of(out), reference::relu_forward(values_of(in)), {}));
      const auto want = reference::relu_backward(values_of(out), values_of(grad_out));
      EXPECT_TRUE(close(floats_of(grad_in), want, {})) << name_of(dtype);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths, ReluSizes, ::testing::Values(0, 1, 15, 16, 17, 16384, 50021));

TEST(Relu, ReferenceIsItsDerivative) {
  const std::vector<double> in = doubles(random_tensor({20}, 1));
  const std::vector<double> grad_out = doubles(random_tensor({20}, 2));
  const auto objective = [&](const std::vector<double>& x) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += reference::relu_forward(x)[i] * grad_out[i];
    return sum;
  };
  const auto got = reference::relu_backward(reference::relu_forward(in), grad_out);
  const auto want = numerical_gradient(objective, in);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-8);
}

template <class T>
void expect_special_values() {
  constexpr float kCases[][3] = {
      // in, out, gradient of 5
      {kNan, kNan, 5},
      {-kNan, kNan, 5},
      {0, 0, 0},
      {-0.0F, 0, 0},
      {kInf, kInf, 5},
      {-kInf, 0, 0},
      {0x1p-14F, 0x1p-14F, 5},
      {-0x1p-14F, 0, 0},
      {0x1p-24F, 0x1p-24F, 5},
      {-0x1p-24F, 0, 0},
      {1.5F, 1.5F, 5},
      {-1.5F, 0, 0},
  };
  Stream stream;
  const Dtype dtype = DtypeOf<T>::kValue;
  for (const auto& [value, want_out, want_grad] : kCases) {
    // Enough copies for the vector loop and for what it leaves over.
    Tensor in = Tensor::empty({37}, dtype);
    Tensor grad_out = Tensor::empty({37}, dtype);
    for (T& element : in.span<T>()) element = T(value);
    for (T& element : grad_out.span<T>()) element = T(5.0F);
    Tensor out = poisoned_tensor(in.shape(), dtype);
    Tensor grad_in = poisoned_tensor(in.shape(), dtype);
    relu_forward(stream, in, out);
    relu_backward(stream, out, grad_out, grad_in);
    for (int64_t i = 0; i < in.numel(); ++i) {
      const auto got = static_cast<float>(out.data<T>()[i]);
      EXPECT_TRUE(std::isnan(want_out) ? std::isnan(got) : got == want_out) << value << ": " << got;
      EXPECT_FALSE(!std::isnan(got) && std::signbit(got)) << "-0 from " << value;
      EXPECT_EQ(static_cast<float>(grad_in.data<T>()[i]), want_grad) << value;
    }
  }
}

TEST(Relu, SpecialValuesF32) {
  expect_special_values<float>();
}
TEST(Relu, SpecialValuesF16) {
  expect_special_values<Half>();
}
TEST(Relu, SpecialValuesBF16) {
  expect_special_values<BFloat16>();
}

TEST(Relu, WorksInPlace) {
  Stream stream;
  const Tensor in = random_tensor({1000}, 1);
  const Tensor grad_out = random_tensor({1000}, 2);
  Tensor want_out = poisoned_tensor(in.shape(), Dtype::kF32);
  Tensor want_grad = poisoned_tensor(in.shape(), Dtype::kF32);
  relu_forward(stream, in, want_out);
  relu_backward(stream, want_out, grad_out, want_grad);
  Tensor values = random_tensor({1000}, 1);
  relu_forward(stream, values, values);
  EXPECT_TRUE(same_bits(values, want_out));
  Tensor grads = random_tensor({1000}, 2);
  relu_backward(stream, want_out, grads, grads);
  EXPECT_TRUE(same_bits(grads, want_grad));
}

TEST(Relu, EveryLevelGivesTheSameBits) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor({1003}, 1));
    const Tensor grad_out = rounded_to(dtype, random_tensor({1003}, 2));
    Tensor want = poisoned_tensor(in.shape(), dtype);
    Tensor want_grad = poisoned_tensor(in.shape(), dtype);
    relu_forward(stream, in, want);
    relu_backward(stream, want, grad_out, want_grad);
    for (ReluForward* body : LS_ISA_BODIES(relu_forward)) {
      Tensor got = poisoned_tensor(in.shape(), dtype);
      body(stream, in, got);
      EXPECT_TRUE(same_bits(got, want));
    }
    for (ReluBackward* body : LS_ISA_BODIES(relu_backward)) {
      Tensor got = poisoned_tensor(in.shape(), dtype);
      body(stream, want, grad_out, got);
      EXPECT_TRUE(same_bits(got, want_grad));
    }
  }
}

TEST(Relu, RejectsOtherShapesAndDtypes) {
  Stream stream;
  const Tensor in = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor other_shape = Tensor::zeros({3, 2}, Dtype::kF32);
  Tensor other_dtype = Tensor::zeros({2, 3}, Dtype::kF16);
  Tensor integers = Tensor::zeros({2, 3}, Dtype::kI32);
  EXPECT_THROW(relu_forward(stream, in, other_shape), ShapeError);
  EXPECT_THROW(relu_forward(stream, in, other_dtype), DtypeError);
  EXPECT_THROW(relu_forward(stream, integers, integers), DtypeError);
  EXPECT_THROW(relu_backward(stream, in, other_shape, other_shape), ShapeError);
  try {
    relu_backward(stream, in, in, other_shape);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[relu_backward] grad_in: shape (3,2), expected (2,3)");
  }
}

TEST(Relu, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor in = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  Tensor out = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  relu_forward(stream, in, out);
  relu_backward(stream, out, in, out);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 40);
  EXPECT_EQ(stream.ledger()[1].bytes, 60);
}

}  // namespace
}  // namespace lockstep::kernels::relu_test
