#include "kernels/elementwise/gelu.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/gelu.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::gelu_test {
namespace {

using reference::Gelu;
using testing::close;
using testing::doubles;
using testing::floats_of;
using testing::format_of;
using testing::kFloatTypes;
using testing::numerical_gradient;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Form {
  GeluForm form;
  Gelu reference;
};
constexpr Form kForms[] = {{GeluForm::kErf, Gelu::kErf}, {GeluForm::kTanh, Gelu::kTanh}};

// What the header promises for inputs up to `largest`, and a rounding to the type.
testing::Tolerance tolerance_of(Dtype dtype, double largest) {
  return {.rel = std::ldexp(1.01, -1 - format_of(dtype).mantissa_bits), .abs = 3e-7 * largest};
}

class GeluSizes : public ::testing::TestWithParam<int64_t> {};

TEST_P(GeluSizes, MatchesReference) {
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const Dtype dtype : kFloatTypes) {
      for (const auto& [form, of_reference] : kForms) {
        const Tensor in = rounded_to(dtype, random_tensor({GetParam()}, 1, -3, 3));
        const Tensor grad_out = rounded_to(dtype, random_tensor({GetParam()}, 2));
        Tensor out = poisoned_tensor(in.shape(), dtype);
        Tensor grad_in = poisoned_tensor(in.shape(), dtype);
        gelu_forward(stream, in, form, out);
        gelu_backward(stream, in, grad_out, form, grad_in);
        const auto want = reference::gelu_forward(values_of(in), of_reference);
        EXPECT_TRUE(close(floats_of(out), want, tolerance_of(dtype, 3))) << name_of(dtype);
        const auto want_grad =
            reference::gelu_backward(values_of(in), values_of(grad_out), of_reference);
        EXPECT_TRUE(close(floats_of(grad_in), want_grad, tolerance_of(dtype, 1))) << name_of(dtype);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths, GeluSizes, ::testing::Values(0, 1, 15, 16, 17, 16384, 50021));

// Floats in steps of a 2^-13th of themselves, down to denormals: each input's own bound.
TEST(Gelu, IsAsNearAsTheHeaderSaysForEverySize) {
  std::vector<double> in;
  for (float x = 0x1p-130F; x < 1e4F; x = std::nextafter(x * (1 + 0x1p-13F), kInf)) {
    in.push_back(static_cast<double>(x));
    in.push_back(static_cast<double>(-x));
  }
  const auto count = std::ssize(in);
  const Tensor values = tensor_of(in, {count}, Dtype::kF32);
  const Tensor ones = tensor_of(std::vector<double>(in.size(), 1), {count}, Dtype::kF32);
  Stream stream;
  for (const auto& [form, of_reference] : kForms) {
    Tensor out = poisoned_tensor({count}, Dtype::kF32);
    Tensor grad_in = poisoned_tensor({count}, Dtype::kF32);
    gelu_forward(stream, values, form, out);
    gelu_backward(stream, values, ones, form, grad_in);
    const std::vector<double> got = values_of(out);
    const std::vector<double> got_grad = values_of(grad_in);
    double error = 0, grad_error = 0;  // NaN stays
    for (size_t i = 0; i < in.size(); ++i) {
      const double off = std::abs(got[i] - in[i] * reference::gelu_share(in[i], of_reference));
      const double allowed = 2.5e-7 * std::abs(in[i]) + 0x1p-149;
      if (!(off / allowed <= error)) error = off / allowed;
      const double grad_off = std::abs(got_grad[i] - reference::gelu_slope(in[i], of_reference));
      if (!(grad_off <= grad_error)) grad_error = grad_off;
    }
    EXPECT_LE(error, 1);
    EXPECT_LE(grad_error, 2.5e-7);
  }
}

// 1 + erf has no digits left there.
TEST(Gelu, TheErfFormKeepsItsDigitsFarBelowZero) {
  std::vector<double> in;
  for (double x = -12; x < -2; x += 1.0 / 64) in.push_back(x);
  const Tensor values = tensor_of(in, {std::ssize(in)}, Dtype::kF32);
  Tensor out = poisoned_tensor(values.shape(), Dtype::kF32);
  Stream stream;
  gelu_forward(stream, values, GeluForm::kErf, out);
  EXPECT_TRUE(close(floats_of(out), reference::gelu_forward(in, Gelu::kErf), {.rel = 1e-5}));
}

TEST(Gelu, ReferenceIsItsDerivative) {
  const std::vector<double> in = doubles(random_tensor({20}, 1, -3, 3));
  const std::vector<double> grad_out = doubles(random_tensor({20}, 2));
  for (const Gelu form : {Gelu::kErf, Gelu::kTanh}) {
    const auto objective = [&](const std::vector<double>& x) {
      double sum = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        sum += reference::gelu_forward(x, form)[i] * grad_out[i];
      }
      return sum;
    };
    const auto got = reference::gelu_backward(in, grad_out, form);
    const auto want = numerical_gradient(objective, in);
    for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-8);
  }
}

TEST(Gelu, SpecialValuesAreAsInPyTorch) {
  constexpr float kCases[][3] = {
      // in, out, gradient of 1
      {kNan, kNan, kNan},
      {-kNan, kNan, kNan},
      {kInf, kInf, kNan},
      {-kInf, kNan, kNan},
      {200, 200, 1},
      {-200, 0, 0},
      {0x1p-149F, 0, .5F},  // half of it is rounded to even
      {0, 0, .5F},
      {-0.0F, 0, .5F},
  };
  Stream stream;
  for (const auto& [form, of_reference] : kForms) {
    for (const auto& [value, want, want_grad] : kCases) {
      // Enough copies for whole vectors and for what they leave over.
      const std::vector<double> copies(37, static_cast<double>(value));
      const Tensor in = tensor_of(copies, {37}, Dtype::kF32);
      const Tensor ones = tensor_of(std::vector<double>(37, 1), {37}, Dtype::kF32);
      Tensor out = poisoned_tensor({37}, Dtype::kF32);
      Tensor grad_in = poisoned_tensor({37}, Dtype::kF32);
      gelu_forward(stream, in, form, out);
      gelu_backward(stream, in, ones, form, grad_in);
      EXPECT_TRUE(close(out.span<float>(), std::vector<float>(37, want), {})) << value;
      EXPECT_TRUE(close(grad_in.span<float>(), std::vector<float>(37, want_grad), {.abs = 1e-7}))
          << value;
    }
  }
}

TEST(Gelu, AnElementsBitsDoNotDependOnItsPlace) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor({100}, 1, -3, 3));
    for (const auto& [form, of_reference] : kForms) {
      Tensor want = poisoned_tensor({100}, dtype);
      gelu_forward(stream, in, form, want);
      for (const int64_t first : {1, 7, 50}) {
        const Tensor part = tensor_of(values_of(in.slice(first, 40)), {40}, dtype);
        Tensor got = poisoned_tensor({40}, dtype);
        gelu_forward(stream, part, form, got);
        EXPECT_EQ(values_of(got), values_of(want.slice(first, 40)));
      }
    }
  }
}

TEST(Gelu, WorksInPlace) {
  Stream stream;
  for (const auto& [form, of_reference] : kForms) {
    const Tensor in = random_tensor({1000}, 1);
    const Tensor grad_out = random_tensor({1000}, 2);
    Tensor want = poisoned_tensor(in.shape(), Dtype::kF32);
    Tensor want_grad = poisoned_tensor(in.shape(), Dtype::kF32);
    gelu_forward(stream, in, form, want);
    gelu_backward(stream, in, grad_out, form, want_grad);
    Tensor values = random_tensor({1000}, 1);
    gelu_forward(stream, values, form, values);
    EXPECT_TRUE(same_bits(values, want));
    Tensor grads = random_tensor({1000}, 2);
    gelu_backward(stream, in, grads, form, grads);
    EXPECT_TRUE(same_bits(grads, want_grad));
  }
}

TEST(Gelu, EveryLevelGivesTheSameBits) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor({1003}, 1, -4, 4));
    const Tensor grad_out = rounded_to(dtype, random_tensor({1003}, 2));
    for (const auto& [form, of_reference] : kForms) {
      Tensor want = poisoned_tensor(in.shape(), dtype);
      Tensor want_grad = poisoned_tensor(in.shape(), dtype);
      gelu_forward(stream, in, form, want);
      gelu_backward(stream, in, grad_out, form, want_grad);
      for (GeluForward* body : LS_ISA_BODIES(gelu_forward)) {
        Tensor got = poisoned_tensor(in.shape(), dtype);
        body(stream, in, form, got);
        EXPECT_TRUE(same_bits(got, want));
      }
      for (GeluBackward* body : LS_ISA_BODIES(gelu_backward)) {
        Tensor got = poisoned_tensor(in.shape(), dtype);
        body(stream, in, grad_out, form, got);
        EXPECT_TRUE(same_bits(got, want_grad));
      }
    }
  }
}

TEST(Gelu, RejectsOtherShapesAndDtypes) {
  Stream stream;
  const GeluForm form = GeluForm::kErf;
  const Tensor in = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor other_shape = Tensor::zeros({3, 2}, Dtype::kF32);
  Tensor other_dtype = Tensor::zeros({2, 3}, Dtype::kF16);
  Tensor integers = Tensor::zeros({2, 3}, Dtype::kI32);
  EXPECT_THROW(gelu_forward(stream, in, form, other_shape), ShapeError);
  EXPECT_THROW(gelu_forward(stream, in, form, other_dtype), DtypeError);
  EXPECT_THROW(gelu_forward(stream, integers, form, integers), DtypeError);
  EXPECT_THROW(gelu_backward(stream, in, other_shape, form, other_shape), ShapeError);
  EXPECT_THROW(gelu_backward(stream, in, in, form, other_shape), ShapeError);
}

TEST(Gelu, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor in = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  Tensor out = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  gelu_forward(stream, in, GeluForm::kErf, out);
  gelu_backward(stream, in, in, GeluForm::kTanh, out);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 40);
  EXPECT_EQ(stream.ledger()[1].bytes, 60);
}

}  // namespace
}  // namespace lockstep::kernels::gelu_test
