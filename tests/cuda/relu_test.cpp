#include "kernels/elementwise/relu.h"

#include <limits>
#include <tuple>

#include "tests/reference/relu.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::relu_test {
namespace {

using testing::CudaTest;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

class CudaRelu : public testing::CudaTestWith<std::tuple<Dtype, int64_t>> {};

TEST_P(CudaRelu, MatchesReference) {
  const auto [dtype, count] = GetParam();
  const Tensor in = rounded_to(dtype, random_tensor({count}, 1));
  const Tensor grad_out = rounded_to(dtype, random_tensor({count}, 2));
  const auto want_out = reference::relu_forward(values_of(in));
  const auto want_grad = reference::relu_backward(want_out, values_of(grad_out));
  for (const bool aligned : {true, false}) {
    const Tensor input = aligned ? upload(in) : upload_misaligned(in);
    Tensor out = poisoned(in.shape(), dtype);
    Tensor grad_in = poisoned(in.shape(), dtype);
    relu_forward(stream_, input, out);
    relu_backward(stream_, out, aligned ? upload(grad_out) : upload_misaligned(grad_out), grad_in);
    EXPECT_TRUE(same_bits(download(out), tensor_of(want_out, in.shape(), dtype)));
    EXPECT_TRUE(same_bits(download(grad_in), tensor_of(want_grad, in.shape(), dtype)));
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths,
                         CudaRelu,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(0, 1, 7, 8, 9, 2048, 5003)));

class CudaReluSpecial : public CudaTest {};

TEST_F(CudaReluSpecial, NanStaysAndDenormalsAreKept) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> in = {kNan, 0, -0.0, kInf, -kInf, 0x1p-24, -0x1p-24, 1.5, -1.5};
  const std::vector<double> want = {kNan, 0, 0, kInf, 0, 0x1p-24, 0, 1.5, 0};
  for (const Dtype dtype : kFloatTypes) {
    Tensor values = upload(tensor_of(in, {9}, dtype));
    relu_forward(stream_, values, values);
    EXPECT_TRUE(same_bits(download(values), tensor_of(want, {9}, dtype)));
  }
}

}  // namespace
}  // namespace lockstep::kernels::relu_test
