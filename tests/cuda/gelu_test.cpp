#include "kernels/elementwise/gelu.h"

#include <limits>
#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::gelu_test {
namespace {

using testing::CudaTest;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;
using testing::tensor_of;

class CudaGelu : public testing::CudaTestWith<std::tuple<Dtype, int64_t>> {};

// The CPU's bits: tests/kernels/gelu_test.cpp compares those with the reference.
TEST_P(CudaGelu, GivesTheCpusBits) {
  const auto [dtype, count] = GetParam();
  Stream cpu;
  const Tensor in = rounded_to(dtype, random_tensor({count}, 1, -5, 5));
  const Tensor grad_out = rounded_to(dtype, random_tensor({count}, 2));
  for (const GeluForm form : {GeluForm::kErf, GeluForm::kTanh}) {
    Tensor want = Tensor::empty(in.shape(), dtype);
    Tensor want_grad = Tensor::empty(in.shape(), dtype);
    gelu_forward(cpu, in, form, want);
    gelu_backward(cpu, in, grad_out, form, want_grad);
    for (const bool aligned : {true, false}) {
      const Tensor input = aligned ? upload(in) : upload_misaligned(in);
      Tensor out = poisoned(in.shape(), dtype);
      Tensor grad_in = poisoned(in.shape(), dtype);
      gelu_forward(stream_, input, form, out);
      const Tensor gradient = aligned ? upload(grad_out) : upload_misaligned(grad_out);
      gelu_backward(stream_, input, gradient, form, grad_in);
      EXPECT_TRUE(same_bits(download(out), want));
      EXPECT_TRUE(same_bits(download(grad_in), want_grad));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths,
                         CudaGelu,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(0, 1, 7, 8, 9, 2048, 5003)));

class CudaGeluSpecial : public CudaTest {};

TEST_F(CudaGeluSpecial, NanStaysAndLargeValuesDoNotOverflow) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> in = {kNan, kInf, -kInf, 200, -200, 0};
  const std::vector<double> want = {kNan, kInf, kNan, 200, -0.0, 0};
  for (const Dtype dtype : kFloatTypes) {
    for (const GeluForm form : {GeluForm::kErf, GeluForm::kTanh}) {
      Tensor values = upload(tensor_of(in, {6}, dtype));
      gelu_forward(stream_, values, form, values);
      EXPECT_TRUE(same_bits_or_nan(download(values), tensor_of(want, {6}, dtype)));
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::gelu_test
