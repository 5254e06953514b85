#include "kernels/random/stochastic_depth.h"

#include <cmath>
#include <tuple>
#include <vector>

#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::stochastic_depth_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;

Tensor image_numbers(int64_t images) {
  Tensor numbers = Tensor::empty({images}, Dtype::kI64);
  for (int64_t n = 0; n < images; ++n) numbers.data<int64_t>()[n] = (n << 31) + 5 * n;
  return numbers;
}

class CudaStochasticDepth : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {};

TEST_P(CudaStochasticDepth, GivesTheBitsOfTheCpu) {
  const auto& [dtype, shape] = GetParam();
  const Tensor branch = rounded_to(dtype, random_tensor(shape, 1));
  const Tensor shortcut = rounded_to(dtype, random_tensor(shape, 2));
  const Tensor grad = rounded_to(dtype, random_tensor(shape, 3));
  const Tensor numbers = image_numbers(shape[0]);
  const Tensor images = upload(numbers);
  for (const double p : {0.0, 0.4, 1.0}) {
    const StochasticDepthParams params = {.p = p, .seed = 0x9876543210, .block = 3};
    Stream cpu;
    Tensor want = poisoned_tensor(shape, dtype);
    Tensor want_branch = poisoned_tensor(shape, dtype);
    Tensor want_shortcut = rounded_to(dtype, grad);
    stochastic_depth_forward(cpu, branch, shortcut, numbers, params, want);
    stochastic_depth_backward(cpu, want, numbers, params, want_shortcut, want_branch);
    for (const bool aligned : {true, false}) {
      const Tensor given = aligned ? upload(branch) : upload_misaligned(branch);
      Tensor out = poisoned(shape, dtype);
      stochastic_depth_forward(stream_, given, upload(shortcut), images, params, out);
      EXPECT_TRUE(same_bits(download(out), want)) << p;
      Tensor grad_branch = poisoned(shape, dtype);
      Tensor both = aligned ? upload(grad) : upload_misaligned(grad);
      stochastic_depth_backward(stream_, out, images, params, both, grad_branch);
      EXPECT_TRUE(same_bits(download(both), want_shortcut)) << p;
      EXPECT_TRUE(same_bits(download(grad_branch), want_branch)) << p;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaStochasticDepth,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{0, 8},
                                                              Shape{2, 0},
                                                              Shape{1, 1},
                                                              Shape{5, 3},
                                                              Shape{3, 4},
                                                              Shape{7, 50},
                                                              Shape{2, 4, 3, 5},
                                                              Shape{3, 1024})));

class CudaStochasticDepthSpecial : public testing::CudaTest {};

TEST_F(CudaStochasticDepthSpecial, NanInfinityAndZerosAsOnTheCpu) {
  std::vector<double> values;
  for (int i = 0; i < 8; ++i) values.insert(values.end(), {NAN, INFINITY, -INFINITY, -0.0, 0.0});
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = testing::tensor_of(values, {2, 20}, dtype);
    const Tensor numbers = image_numbers(2);
    for (const double p : {0.0, 1.0}) {
      Stream cpu;
      Tensor want = poisoned_tensor(in.shape(), dtype);
      stochastic_depth_forward(cpu, in, in, numbers, {.p = p}, want);
      Tensor out = poisoned(in.shape(), dtype);
      const Tensor given = upload(in);
      stochastic_depth_forward(stream_, given, given, upload(numbers), {.p = p}, out);
      EXPECT_TRUE(same_bits_or_nan(download(out), want)) << p;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::stochastic_depth_test
