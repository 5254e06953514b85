// What conv2d refuses, and what it declares to the ledger.
#include <gtest/gtest.h>

#include "kernels/conv/conv2d.h"

namespace lockstep::kernels::conv2d_arguments_test {
namespace {

TEST(Conv2d, OutputShape) {
  EXPECT_EQ(conv2d_output_shape({2, 3, 224, 200}, {64, 3, 7, 7}, {2, 2, 3, 3}),
            (Shape{2, 64, 112, 100}));
  EXPECT_EQ(conv2d_output_shape({2, 6, 4, 4}, {9, 2, 1, 1}, {.groups = 3}), (Shape{2, 9, 4, 4}));
  EXPECT_EQ(conv2d_output_shape({2, 3, 8, 9}, {4, 3, 3, 2}, {2, 3, 0, 1}), (Shape{2, 4, 3, 4}));
}

TEST(Conv2d, RejectsImpossibleShapes) {
  const Shape in{2, 3, 4, 4};
  EXPECT_THROW(conv2d_output_shape({2, 3}, {5, 3, 1, 1}, {}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 2, 1, 1}, {}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 3, 0, 1}, {}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 3, 1, 1}, {.stride_h = 0}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 3, 1, 1}, {.stride_w = 0}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 3, 1, 1}, {.pad_h = -1}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 3, 1, 1}, {.pad_w = -1}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 3, 5, 1}, {}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {6, 1, 1, 1}, {.groups = 0}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 1, 1, 1}, {.groups = 3}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {6, 3, 1, 1}, {.groups = 3}), ShapeError);
  EXPECT_THROW(conv2d_output_shape({2, 4, 4, 4}, {6, 1, 1, 1}, {.groups = 3}), ShapeError);
  EXPECT_THROW(conv2d_output_shape(in, {5, 3, 1, 5}, {}), ShapeError);
}

TEST(Conv2d, RejectsArgumentsThatDoNotFit) {
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, Dtype::kF32); };
  Stream stream;
  const Shards shards = Shards::single(2);
  const Conv2dParams params{.pad_h = 1, .pad_w = 1};
  const Tensor in = zeros({2, 3, 4, 4});
  const Tensor weight = zeros({5, 3, 3, 3});
  const Tensor grad_out = zeros({2, 5, 4, 4});
  Tensor out = zeros({2, 5, 4, 4});
  Tensor small = zeros({2, 5, 3, 4});
  Tensor row = zeros({2, 135});
  try {
    conv2d_forward(stream, shards, {in, weight, zeros({5}), params, small});
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[conv2d_forward] out: shape (2,5,3,4), expected (2,5,4,4)");
  }
  EXPECT_THROW(conv2d_forward(stream, Shards::single(1), {in, weight, {}, params, out}),
               ShapeError);
  EXPECT_THROW(conv2d_forward(stream, shards, {in, weight, zeros({4}), params, out}), ShapeError);
  EXPECT_THROW(conv2d_backward_data(stream, shards, small, weight, params, out), ShapeError);
  EXPECT_THROW(conv2d_backward_weight(stream, shards, {in, grad_out, weight.shape(), params, row}),
               ShapeError);
  const Tensor half = Tensor::zeros(in.shape(), Dtype::kF16);
  EXPECT_THROW(conv2d_forward(stream, shards, {half, weight, {}, params, out}), DtypeError);
  const Tensor dry = Tensor::empty(in.shape(), Dtype::kF32, Device::kDry);
  EXPECT_THROW(conv2d_forward(stream, shards, {dry, weight, {}, params, out}), DeviceError);
}

TEST(Conv2d, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const auto dry = [](const Shape& shape) {
    return Tensor::empty(shape, Dtype::kF32, Device::kDry);
  };
  const Shards shards = Shards::cut(4, 2, 1);
  const Conv2dParams params{.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
  Tensor in = dry({4, 3, 8, 6});
  const Tensor weight = dry({5, 3, 3, 3});
  Tensor out = dry({4, 5, 4, 3});
  Tensor grad_weight = dry({2, 135});
  Tensor grad_bias = dry({2, 5});
  conv2d_forward(stream, shards, {in, weight, dry({5}), params, out});
  conv2d_backward_data(stream, shards, out, weight, params, in);
  conv2d_backward_weight(
      stream, shards, {in, out, weight.shape(), params, grad_weight, &grad_bias});
  ASSERT_EQ(stream.ledger().size(), 3U);
  for (const LedgerEntry& entry : stream.ledger()) {
    EXPECT_EQ(entry.flops, 2 * 4 * 5 * 4 * 3 * 3 * 3 * 3) << entry.op;
  }
  EXPECT_EQ(stream.ledger()[0].op, "conv2d_forward");
  EXPECT_EQ(stream.ledger()[0].bytes, 4 * (576 + 135 + 5 + 240));
  EXPECT_EQ(stream.ledger()[1].op, "conv2d_backward_data");
  EXPECT_EQ(stream.ledger()[1].bytes, 4 * (576 + 135 + 240));
  EXPECT_EQ(stream.ledger()[2].op, "conv2d_backward_weight");
  EXPECT_EQ(stream.ledger()[2].bytes, 4 * (576 + 240 + 2 * 135 + 2 * 5));
}

}  // namespace
}  // namespace lockstep::kernels::conv2d_arguments_test
