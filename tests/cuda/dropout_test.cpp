#include "kernels/random/dropout.h"

#include <cmath>
#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::dropout_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;

constexpr DropoutParams kParams = {.p = 0.3, .seed = 0x9876543210, .layer = 3};

Tensor image_numbers(int64_t images) {
  Tensor numbers = Tensor::empty({images}, Dtype::kI64);
  for (int64_t n = 0; n < images; ++n) numbers.data<int64_t>()[n] = (int64_t{n} << 31) + 5 * n;
  return numbers;
}

Tensor on_cpu(const Tensor& in, const DropoutParams& params) {
  Stream cpu;
  Tensor out = poisoned_tensor(in.shape(), in.dtype());
  dropout_forward(cpu, in, image_numbers(in.shape()[0]), params, out);
  return out;
}

class CudaDropout : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {};

TEST_P(CudaDropout, GivesTheBitsOfTheCpu) {
  const auto& [dtype, shape] = GetParam();
  const Tensor in = rounded_to(dtype, random_tensor(shape, 1));
  const Tensor images = upload(image_numbers(shape[0]));
  for (const double p : {0.0, 0.3, 1.0}) {
    DropoutParams params = kParams;
    params.p = p;
    const Tensor want = on_cpu(in, params);
    for (const bool aligned : {true, false}) {
      const Tensor input = aligned ? upload(in) : upload_misaligned(in);
      Tensor out = poisoned(shape, dtype);
      Tensor grad_in = poisoned(shape, dtype);
      dropout_forward(stream_, input, images, params, out);
      dropout_backward(stream_, input, images, params, grad_in);
      EXPECT_TRUE(same_bits(download(out), want)) << p;
      EXPECT_TRUE(same_bits(download(grad_in), want)) << p;
    }
    Tensor values = upload(in);
    dropout_forward(stream_, values, images, params, values);
    EXPECT_TRUE(same_bits(download(values), want)) << p << " in place";
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaDropout,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{0, 8},
                                                              Shape{2, 0},
                                                              Shape{1, 1},
                                                              Shape{5, 3},
                                                              Shape{3, 4},
                                                              Shape{3, 12},
                                                              Shape{7, 50},
                                                              Shape{2, 4, 3, 5},
                                                              Shape{3, 1024})));

class CudaDropoutSpecial : public testing::CudaTest {};

TEST_F(CudaDropoutSpecial, NanInfinityAndSignsAsOnTheCpu) {
  std::vector<double> values;
  for (int i = 0; i < 8; ++i) values.insert(values.end(), {NAN, INFINITY, -INFINITY, -0.0, -1.5});
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = testing::tensor_of(values, {2, 20}, dtype);
    Tensor out = upload(in);
    dropout_forward(stream_, out, upload(image_numbers(2)), kParams, out);
    EXPECT_TRUE(same_bits_or_nan(download(out), on_cpu(in, kParams)));
  }
}

}  // namespace
}  // namespace lockstep::kernels::dropout_test
