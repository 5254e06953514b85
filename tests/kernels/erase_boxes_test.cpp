#include "kernels/image/erase_boxes.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/erase_boxes.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/golden.h"
#include "tests/support/image_boxes.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::erase_boxes_test {
namespace {

using testing::boxes_of_each_kind;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

const Shape kShape = {6, 3, 7, 9};

// Each call returns the same values.
Tensor images() {
  return random_tensor(kShape, 1, -2, 2);
}

Tensor erased_by_the_reference(const Tensor& boxes) {
  const Tensor from = images();
  Tensor to = Tensor::empty(kShape, Dtype::kF32);
  const auto at = [](int64_t n, int64_t c, size_t y, size_t x) {
    return ((n * 7 + static_cast<int64_t>(y)) * 9 + static_cast<int64_t>(x)) * 3 + c;
  };
  for (int64_t n = 0; n < kShape[0]; ++n) {
    const int32_t* const box = boxes.data<int32_t>() + 4 * n;
    for (int64_t c = 0; c < 3; ++c) {
      std::vector plane(7, std::vector<double>(9));
      for (size_t y = 0; y < 7; ++y)
        for (size_t x = 0; x < 9; ++x)
          plane[y][x] = static_cast<double>(from.data<float>()[at(n, c, y, x)]);
      plane = reference::erase_boxes(plane, {box[0], box[1], box[2], box[3]});
      for (size_t y = 0; y < 7; ++y)
        for (size_t x = 0; x < 9; ++x)
          to.data<float>()[at(n, c, y, x)] = static_cast<float>(plane[y][x]);
    }
  }
  return to;
}

TEST(EraseBoxes, HasTheReferencesBitsAtEveryLevel) {
  const Tensor boxes = boxes_of_each_kind();
  const Tensor want = erased_by_the_reference(boxes);
  EXPECT_FALSE(same_bits(images(), want));
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const Dtype dtype : kFloatTypes) {
      for (EraseBoxes* body : LS_ISA_BODIES(erase_boxes)) {
        Tensor got = rounded_to(dtype, images());
        body(stream, Shards::cut(6, 2, 1), boxes, got);
        EXPECT_TRUE(same_bits(got, rounded_to(dtype, want))) << name_of(dtype);
      }
    }
  }
}

TEST(EraseBoxes, ErasesAsTorchvision) {
  const testing::GoldenCase golden = testing::golden_case("image_boxes", "erase");
  Tensor got = golden.tensor("images");
  Stream stream;
  erase_boxes(stream, Shards::single(2), golden.tensor("boxes"), got);
  EXPECT_TRUE(same_bits(got, golden.tensor("out")));
}

TEST(EraseBoxes, NanBecomesZero) {
  Stream stream;
  Tensor one = Tensor::empty({1, 1, 2, 2}, Dtype::kF32);
  for (float& value : one.span<float>()) value = std::numeric_limits<float>::quiet_NaN();
  Tensor boxes = Tensor::zeros({1, 4}, Dtype::kI32);
  boxes.data<int32_t>()[2] = boxes.data<int32_t>()[3] = 1;
  erase_boxes(stream, Shards::single(1), boxes, one);
  EXPECT_EQ(one.data<float>()[0], 0);
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(one.data<float>()[i]));
}

TEST(EraseBoxes, RejectsArgumentsThatDoNotFit) {
  Stream stream;
  Tensor six = images();
  Tensor bytes = Tensor::zeros(kShape, Dtype::kU8);
  Tensor flat = Tensor::zeros({6, 3}, Dtype::kF32);
  const Tensor boxes = boxes_of_each_kind();
  EXPECT_NO_THROW(erase_boxes(stream, Shards::single(6), boxes, six));
  EXPECT_THROW(erase_boxes(stream, Shards::single(5), boxes, six), ShapeError);
  EXPECT_THROW(erase_boxes(stream, Shards::single(6), boxes.slice(0, 5), six), ShapeError);
  EXPECT_THROW(erase_boxes(stream, Shards::single(6), Tensor::zeros({6, 4}, Dtype::kI64), six),
               DtypeError);
  EXPECT_THROW(erase_boxes(stream, Shards::single(6), boxes, bytes), DtypeError);
  EXPECT_THROW(erase_boxes(stream, Shards::single(6), boxes, flat), ShapeError);
}

TEST(EraseBoxes, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor tensor = Tensor::empty({10, 1, 2, 2}, Dtype::kF16, Device::kDry);
  const Tensor boxes = Tensor::empty({10, 4}, Dtype::kI32, Device::kDry);
  erase_boxes(stream, Shards::single(10), boxes, tensor);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 80 + 160);
}

}  // namespace
}  // namespace lockstep::kernels::erase_boxes_test
