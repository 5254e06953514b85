#include "kernels/elementwise/concat_channels.h"

#include <tuple>

#include <gtest/gtest.h>

#include "tests/reference/concat_channels.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::concat_channels_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

class ConcatChannels : public ::testing::TestWithParam<std::tuple<Shape, int64_t>> {
 protected:
  Shape part(int64_t channels) const { return {shape()[0], channels, shape()[2], shape()[3]}; }
  static const Shape& shape() { return std::get<0>(GetParam()); }
  static int64_t others() { return std::get<1>(GetParam()); }
  const Shape of_b = part(others());
  const Shape of_both = part(shape()[1] + others());
};

TEST_P(ConcatChannels, IsTheReferenceOnAnyNumberOfThreadsAndLevel) {
  const Shards shards = Shards::cut(shape()[0], 2, 1);
  const auto rows = static_cast<size_t>(shape()[0] * shape()[2] * shape()[3]);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor a = rounded_to(dtype, random_tensor(shape(), 1));
    const Tensor b = rounded_to(dtype, random_tensor(of_b, 2));
    const Tensor both = rounded_to(dtype, random_tensor(of_both, 3));
    const auto joined = reference::concat_channels_forward(values_of(a), values_of(b), rows);
    const auto [first, second] =
        reference::concat_channels_backward(values_of(both), rows, static_cast<size_t>(shape()[1]));
    const auto expect = [&](Stream& stream, auto* forward, auto* backward) {
      Tensor out = poisoned_tensor(of_both, dtype);
      Tensor grad_a = poisoned_tensor(shape(), dtype);
      Tensor grad_b = poisoned_tensor(of_b, dtype);
      forward(stream, shards, a, b, out);
      backward(stream, shards, both, grad_a, grad_b);
      EXPECT_TRUE(same_bits(out, tensor_of(joined, of_both, dtype)));
      EXPECT_TRUE(same_bits(grad_a, tensor_of(first, shape(), dtype)));
      EXPECT_TRUE(same_bits(grad_b, tensor_of(second, of_b, dtype)));
    };
    Stream one, two(Device::kCpu, 2);
    expect(one, concat_channels_forward, concat_channels_backward);
    expect(two, concat_channels_forward, concat_channels_backward);
    for (ConcatChannelsForward* body : LS_ISA_BODIES(concat_channels_forward)) {
      expect(one, body, concat_channels_backward);
    }
    for (ConcatChannelsBackward* body : LS_ISA_BODIES(concat_channels_backward)) {
      expect(one, concat_channels_forward, body);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         ConcatChannels,
                         ::testing::Values(std::tuple(Shape{3, 8, 5, 4}, 8),
                                           std::tuple(Shape{2, 3, 2, 3}, 5),
                                           std::tuple(Shape{1, 1, 1, 1}, 1)));

TEST(ConcatChannelsSpecial, NanKeepsItsBits) {
  Stream stream;
  const Tensor a = poisoned_tensor({1, 2, 1, 1}, Dtype::kF16);
  const Tensor b = Tensor::zeros({1, 2, 1, 1}, Dtype::kF16);
  Tensor out = Tensor::zeros({1, 4, 1, 1}, Dtype::kF16);
  concat_channels_forward(stream, Shards::single(1), a, b, out);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(out.data<Half>()[i].bits, i < 2 ? 0xffff : 0) << i;
  }
}

TEST(ConcatChannelsSpecial, EmptyImagesAndNoImagesWriteNothing) {
  Stream stream;
  for (const Shape& shape : {Shape{0, 2, 3, 3}, Shape{2, 2, 0, 3}}) {
    const Shards shards = Shards::single(shape[0]);
    const Tensor memory = poisoned_tensor({64}, Dtype::kF32);
    const auto nothing = [&](int64_t channels) {
      return memory.slice(0, 0).view({shape[0], channels, shape[2], shape[3]});
    };
    Tensor a = nothing(2), b = nothing(2), both = nothing(4);
    concat_channels_forward(stream, shards, a, b, both);
    concat_channels_backward(stream, shards, both, a, b);
    EXPECT_TRUE(same_bits(memory, poisoned_tensor({64}, Dtype::kF32))) << to_string(shape);
  }
}

TEST(ConcatChannelsSpecial, RejectsOtherShapes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor a = Tensor::zeros({2, 3, 4, 4}, Dtype::kF32);
  Tensor out = Tensor::zeros({2, 6, 4, 4}, Dtype::kF32);
  EXPECT_THROW(
      concat_channels_forward(stream, shards, a, Tensor::zeros({2, 4, 4, 4}, Dtype::kF32), out),
      ShapeError);
  EXPECT_THROW(
      concat_channels_forward(stream, shards, a, Tensor::zeros({2, 3, 4, 5}, Dtype::kF32), out),
      ShapeError);
  EXPECT_THROW(
      concat_channels_forward(stream, shards, a, Tensor::zeros({2, 3, 4, 4}, Dtype::kF16), out),
      DtypeError);
  EXPECT_THROW(concat_channels_forward(stream, Shards::single(1), a, a, out), ShapeError);
}

TEST(ConcatChannelsSpecial, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const auto dry = [](const Shape& shape) {
    return Tensor::empty(shape, Dtype::kF16, Device::kDry);
  };
  Tensor a = dry({2, 3, 4, 4}), b = dry({2, 1, 4, 4}), both = dry({2, 4, 4, 4});
  concat_channels_forward(stream, Shards::single(2), a, b, both);
  concat_channels_backward(stream, Shards::single(2), both, a, b);
  ASSERT_EQ(stream.ledger().size(), 2U);
  for (const LedgerEntry& entry : stream.ledger()) EXPECT_EQ(entry.bytes, 2 * 256);
}

}  // namespace
}  // namespace lockstep::kernels::concat_channels_test
