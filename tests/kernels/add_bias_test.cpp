#include "kernels/linear/add_bias.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/reference/add_bias.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::add_bias_test {
namespace {

using testing::close;
using testing::doubles;
using testing::f32_sum;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

class AddBias : public ::testing::TestWithParam<Shape> {};

TEST_P(AddBias, ForwardRoundsTheReferenceOnce) {
  const Tensor bias = random_tensor({GetParam()[1]}, 2);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor(GetParam(), 1));
    const Tensor want =
        tensor_of(reference::add_bias_forward(values_of(in), doubles(bias)), in.shape(), dtype);
    for (const int threads : {1, 3}) {
      Stream stream(Device::kCpu, threads);
      Tensor out = poisoned_tensor(in.shape(), dtype);
      add_bias_forward(stream, in, bias, out);
      EXPECT_TRUE(same_bits(out, want)) << name_of(dtype);
      Tensor values = rounded_to(dtype, in);
      add_bias_forward(stream, values, bias, values);
      EXPECT_TRUE(same_bits(values, want)) << name_of(dtype) << " in place";
    }
  }
}

TEST_P(AddBias, BackwardMatchesReference) {
  const Shape& shape = GetParam();
  const Shards shards = Shards::single(shape[0]);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor grad_out = rounded_to(dtype, random_tensor(shape, 3));
    Stream stream;
    Tensor grad_bias = poisoned_tensor({1, shape[1]}, Dtype::kF32);
    add_bias_backward(stream, shards, grad_out, grad_bias);
    const std::vector<double> want =
        reference::add_bias_backward(values_of(grad_out), static_cast<size_t>(shape[1]));
    EXPECT_TRUE(close(grad_bias.span<const float>(), want, f32_sum(grad_out.numel() / shape[1])));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         AddBias,
                         ::testing::Values(Shape{0, 5},
                                           Shape{1, 1},
                                           Shape{7, 3},
                                           Shape{33, 10},
                                           Shape{257, 16},
                                           Shape{5, 1003},
                                           Shape{2, 3, 5, 7},
                                           Shape{3, 20, 150, 151}));

// The order itself: partial sums of every 16th row, their tree, then the chunks the same way.
std::vector<float> summed_in_order(const std::vector<float>& rows) {
  std::vector<float> sums;
  for (size_t begin = 0; begin == 0 || begin < rows.size(); begin += 256) {
    float lanes[16] = {};
    for (size_t r = begin; r < std::min(begin + 256, rows.size()); ++r) lanes[r % 16] += rows[r];
    for (size_t width = 8; width > 0; width /= 2) {
      for (size_t i = 0; i < width; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
    }
    sums.push_back(lanes[0]);
  }
  return sums.size() == 1 ? sums : summed_in_order(sums);
}

TEST(AddBiasBackward, SumsInTheOrderOfColumnSum) {
  for (const int64_t rows : {0, 1, 16, 255, 256, 257, 5000, 70000}) {
    const Tensor grad_out = random_tensor({rows, 3}, 1, -100, 100);
    Stream stream;
    Tensor grad_bias = poisoned_tensor({1, 3}, Dtype::kF32);
    add_bias_backward(stream, Shards::single(rows), grad_out, grad_bias);
    for (int64_t k = 0; k < 3; ++k) {
      std::vector<float> column;
      for (int64_t r = 0; r < rows; ++r) column.push_back(grad_out.data<float>()[3 * r + k]);
      EXPECT_EQ(grad_bias.data<float>()[k], summed_in_order(column)[0]) << rows << " rows";
    }
  }
}

TEST(AddBiasBackward, EveryShardIsALeafOfItsOwn) {
  const Shards shards = {.offsets = {0, 3, 3, 4, 9}};
  const Tensor grad_out = random_tensor({9, 5, 8, 9}, 1);
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    Tensor grad_bias = poisoned_tensor({4, 5}, Dtype::kF32);
    add_bias_backward(stream, shards, grad_out, grad_bias);
    for (int64_t k = 0; k < 4; ++k) {
      Tensor alone = poisoned_tensor({1, 5}, Dtype::kF32);
      add_bias_backward(stream,
                        Shards::single(shards.count(k)),
                        grad_out.slice(shards.begin(k), shards.count(k)),
                        alone);
      EXPECT_TRUE(same_bits(grad_bias.slice(k, 1), alone)) << "shard " << k;
    }
    EXPECT_TRUE(same_bits(grad_bias.slice(1, 1), Tensor::zeros({1, 5}, Dtype::kF32)));
  }
}

TEST(AddBias, NanAndInfinityFollowIeee) {
  Stream stream;
  const Tensor in =
      tensor_of(std::vector<double>{NAN, INFINITY, INFINITY, 1, -INFINITY, 1}, {2, 3}, Dtype::kF32);
  const Tensor bias = tensor_of(std::vector<double>{1, 1, -INFINITY}, {3}, Dtype::kF32);
  Tensor out = poisoned_tensor({2, 3}, Dtype::kF32);
  add_bias_forward(stream, in, bias, out);
  EXPECT_TRUE(close(out.span<const float>(),
                    std::vector<double>{NAN, INFINITY, NAN, 2, -INFINITY, -INFINITY},
                    {}));
  Tensor grad_bias = poisoned_tensor({1, 3}, Dtype::kF32);
  add_bias_backward(stream, Shards::single(2), in, grad_bias);
  EXPECT_TRUE(close(grad_bias.span<const float>(), std::vector<double>{NAN, NAN, INFINITY}, {}));
}

TEST(AddBias, InstructionSetsAgree) {
  Stream stream;
  const Shards shards = {.offsets = {0, 1, 4}};
  const Tensor bias = random_tensor({37}, 2);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor({4, 37, 13, 11}, 1));
    Tensor want = poisoned_tensor(in.shape(), dtype);
    Tensor want_sums = poisoned_tensor({2, 37}, Dtype::kF32);
    add_bias_forward(stream, in, bias, want);
    add_bias_backward(stream, shards, in, want_sums);
    for (AddBiasForward* body : LS_ISA_BODIES(add_bias_forward)) {
      Tensor got = poisoned_tensor(in.shape(), dtype);
      body(stream, in, bias, got);
      EXPECT_TRUE(same_bits(got, want)) << name_of(dtype);
    }
    for (AddBiasBackward* body : LS_ISA_BODIES(add_bias_backward)) {
      Tensor got = poisoned_tensor({2, 37}, Dtype::kF32);
      body(stream, shards, in, got);
      EXPECT_TRUE(same_bits(got, want_sums)) << name_of(dtype);
    }
  }
}

TEST(AddBias, RejectsBadArguments) {
  Stream stream;
  const Tensor in = Tensor::zeros({2, 3, 4, 5}, Dtype::kF32);
  const Tensor bias = Tensor::zeros({3}, Dtype::kF32);
  Tensor out = Tensor::zeros({2, 3, 4, 5}, Dtype::kF32);
  Tensor grad_bias = Tensor::zeros({1, 3}, Dtype::kF32);
  EXPECT_THROW(add_bias_forward(stream, in, Tensor::zeros({3}, Dtype::kF16), out), DtypeError);
  EXPECT_THROW(add_bias_forward(stream, in, bias, grad_bias), ShapeError);
  EXPECT_THROW(add_bias_forward(stream, bias, bias, out), ShapeError);
  EXPECT_THROW(add_bias_backward(stream, Shards::single(3), in, grad_bias), ShapeError);
  EXPECT_THROW(add_bias_backward(stream, Shards::cut(2, 2, 1), in, grad_bias), ShapeError);
  EXPECT_THROW(
      add_bias_backward(stream, Shards::single(2), Tensor::zeros({2, 3}, Dtype::kI32), grad_bias),
      DtypeError);
  try {
    add_bias_forward(stream, in, Tensor::zeros({4}, Dtype::kF32), out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[add_bias_forward] bias: shape (4), expected (3)");
  }
}

TEST(AddBias, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor in = Tensor::empty({5, 2}, Dtype::kF16, Device::kDry);
  const Tensor bias = Tensor::empty({2}, Dtype::kF32, Device::kDry);
  Tensor out = Tensor::empty({5, 2}, Dtype::kF16, Device::kDry);
  Tensor grad_bias = Tensor::empty({1, 2}, Dtype::kF32, Device::kDry);
  add_bias_forward(stream, in, bias, out);
  add_bias_backward(stream, Shards::single(5), in, grad_bias);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 48);
  EXPECT_EQ(stream.ledger()[1].bytes, 28);
}

}  // namespace
}  // namespace lockstep::kernels::add_bias_test
