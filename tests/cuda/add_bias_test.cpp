#include "kernels/linear/add_bias.h"

#include <cmath>
#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::add_bias_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;

Tensor cpu_forward(const Tensor& in, const Tensor& bias) {
  Stream cpu;
  Tensor out = poisoned_tensor(in.shape(), in.dtype());
  add_bias_forward(cpu, in, bias, out);
  return out;
}

Tensor cpu_backward(const Shards& shards, const Tensor& grad_out) {
  Stream cpu;
  Tensor grad_bias = poisoned_tensor({shards.local(), grad_out.shape()[1]}, Dtype::kF32);
  add_bias_backward(cpu, shards, grad_out, grad_bias);
  return grad_bias;
}

class CudaAddBias : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {
 protected:
  void expect_leaves(const Shards& shards, const Tensor& grad_out) {
    const Tensor want = cpu_backward(shards, grad_out);
    for (const bool aligned : {true, false}) {
      Tensor grad_bias = poisoned(want.shape(), Dtype::kF32);
      add_bias_backward(
          stream_, shards, aligned ? upload(grad_out) : upload_misaligned(grad_out), grad_bias);
      EXPECT_TRUE(same_bits(download(grad_bias), want)) << (aligned ? "aligned" : "misaligned");
    }
  }
};

TEST_P(CudaAddBias, GivesTheBitsOfTheCpu) {
  const auto& [dtype, shape] = GetParam();
  const Tensor in = rounded_to(dtype, random_tensor(shape, 1));
  const Tensor bias = random_tensor({shape[1]}, 2);
  const Tensor want = cpu_forward(in, bias);
  for (const bool aligned : {true, false}) {
    Tensor out = poisoned(shape, dtype);
    add_bias_forward(stream_, aligned ? upload(in) : upload_misaligned(in), upload(bias), out);
    EXPECT_TRUE(same_bits(download(out), want)) << (aligned ? "aligned" : "misaligned");
  }
  Tensor values = upload(in);
  add_bias_forward(stream_, values, upload_misaligned(bias), values);
  EXPECT_TRUE(same_bits(download(values), want)) << "in place, bias misaligned";
  expect_leaves(Shards::single(shape[0]), in);
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaAddBias,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{0, 8},
                                                              Shape{1, 1},
                                                              Shape{2, 0},
                                                              Shape{5, 3},
                                                              Shape{300, 10},
                                                              Shape{17, 64},
                                                              Shape{3, 136},
                                                              Shape{2, 203},
                                                              Shape{2, 24, 7, 5})));

class CudaAddBiasShards : public CudaAddBias {};

TEST_P(CudaAddBiasShards, EveryShardIsALeafOfItsOwn) {
  const auto& [dtype, shape] = GetParam();
  const Tensor grad_out = rounded_to(dtype, random_tensor(shape, 1));
  expect_leaves({.offsets = {0, 3, 3, 4, 9}}, grad_out);
  expect_leaves({.offsets = {0, 0, 9, 9}}, grad_out);
}
INSTANTIATE_TEST_SUITE_P(
    Sizes,
    CudaAddBiasShards,
    ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                       ::testing::Values(Shape{9, 8}, Shape{9, 3, 9, 11}, Shape{9, 16, 10, 10})));

class CudaAddBiasSpecial : public testing::CudaTest {};

TEST_F(CudaAddBiasSpecial, ThreeLevelsOfChunks) {
  const Tensor grad_out = random_tensor({66000, 1}, 1);
  const Shards shards = {.offsets = {0, 100, 66000}};
  Tensor grad_bias = poisoned({2, 1}, Dtype::kF32);
  add_bias_backward(stream_, shards, upload(grad_out), grad_bias);
  EXPECT_TRUE(same_bits(download(grad_bias), cpu_backward(shards, grad_out)));
}

TEST_F(CudaAddBiasSpecial, NanInfinityAndZerosAsOnTheCpu) {
  const std::vector<double> values = {NAN, INFINITY, INFINITY, -0.0, 1, -INFINITY, 1, -0.0};
  const Tensor bias =
      testing::tensor_of(std::vector<double>{1, 1, -INFINITY, -0.0}, {4}, Dtype::kF32);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = testing::tensor_of(values, {2, 4}, dtype);
    Tensor out = poisoned({2, 4}, dtype);
    Tensor grad_bias = poisoned({1, 4}, Dtype::kF32);
    add_bias_forward(stream_, upload(in), upload(bias), out);
    add_bias_backward(stream_, Shards::single(2), upload(in), grad_bias);
    EXPECT_TRUE(same_bits_or_nan(download(out), cpu_forward(in, bias)));
    EXPECT_TRUE(same_bits_or_nan(download(grad_bias), cpu_backward(Shards::single(2), in)));
  }
}

TEST_F(CudaAddBiasSpecial, TooManyShardsAreRefused) {
  Shards shards;
  shards.offsets.resize(258);
  Tensor grad_bias = poisoned({257, 4}, Dtype::kF32);
  EXPECT_THROW(add_bias_backward(stream_, shards, poisoned({0, 4}, Dtype::kF32), grad_bias),
               ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels::add_bias_test
