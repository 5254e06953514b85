#include "core/tensor.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::tensor_test {
namespace {

using testing::random_tensor;
using testing::same_bits;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape().stride0(), 1);
  EXPECT_EQ(Shape({7}).numel(), 7);
  EXPECT_EQ(Shape({7}).stride0(), 1);
  EXPECT_EQ(Shape({2, 3, 5, 7}).numel(), 210);
  EXPECT_EQ(Shape({2, 3, 5, 7}).stride0(), 105);
  EXPECT_EQ(Shape({0, 3}).numel(), 0);
}

TEST(Shape, PrintsAndCompares) {
  EXPECT_EQ(to_string(Shape()), "()");
  EXPECT_EQ(to_string(Shape({8, 64, 28, 28})), "(8,64,28,28)");
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 1}));
  EXPECT_NE(Shape(), Shape({0}));
}

TEST(Shape, RefusesWhatIsNone) {
  EXPECT_THROW(Shape({1, 1, 1, 1, 1}), ShapeError);
  EXPECT_THROW(Shape({2, -1}), ShapeError);
  EXPECT_THROW(Shape({int64_t{1} << 32, int64_t{1} << 31}), ShapeError);
  EXPECT_EQ(Shape({int64_t{1} << 32, int64_t{1} << 30}).numel(), int64_t{1} << 62);
}

TEST(Tensor, UndefinedHasNothing) {
  const Tensor tensor;
  EXPECT_FALSE(tensor.defined());
  EXPECT_EQ(tensor.numel(), 0);
  EXPECT_EQ(tensor.bytes(), nullptr);
}

TEST(Tensor, BytesMustNotOverflow) {
  const Shape huge = {int64_t{1} << 31, int64_t{1} << 31};  // times 4 bytes: 2^64, which is 0
  EXPECT_THROW((void)Tensor::empty(huge, Dtype::kF32), ShapeError);
  EXPECT_THROW((void)Tensor::empty(huge, Dtype::kF32, Device::kDry), ShapeError);
  EXPECT_EQ(Tensor::empty(huge, Dtype::kU8, Device::kDry).nbytes(), size_t{1} << 62);
}

TEST(Tensor, ZerosAreZeroEvenInReusedMemory) {
  {
    Tensor dirty = Tensor::empty({1000}, Dtype::kU8);
    for (uint8_t& byte : dirty.span<uint8_t>()) byte = 255;
  }
  const Tensor clean = Tensor::zeros({1000}, Dtype::kU8);
  for (const uint8_t byte : clean.span<uint8_t>()) ASSERT_EQ(byte, 0);
}

TEST(Tensor, CopiesShareMemoryUntilTheLastIsGone) {
  Tensor copy;
  {
    const Tensor original = random_tensor({4}, 1);
    copy = original;
    EXPECT_EQ(copy.bytes(), original.bytes());
  }
  EXPECT_TRUE(same_bits(copy, random_tensor({4}, 1)));
}

TEST(Tensor, OtherElementTypesAreRefused) {
  Tensor tensor = Tensor::zeros({1}, Dtype::kF16);
  EXPECT_NO_THROW((void)tensor.data<Half>());
  EXPECT_THROW((void)tensor.data<BFloat16>(), DtypeError);
  const Tensor& constant = tensor;
  EXPECT_THROW((void)constant.span<const float>(), DtypeError);
}

TEST(Tensor, WrapKeepsTheOwnerAlive) {
  const auto owner = std::make_shared<std::vector<float>>(6, 1.5F);
  {
    const std::shared_ptr<std::byte> data(owner, reinterpret_cast<std::byte*>(owner->data()));
    const Tensor tensor = Tensor::wrap(data, {2, 3}, Dtype::kF32, Device::kCpu);
    EXPECT_EQ(tensor.data<float>()[5], 1.5F);
    EXPECT_EQ(owner.use_count(), 3);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(Tensor, ViewKeepsTheMemory) {
  const Tensor tensor = random_tensor({2, 6}, 1);
  const Tensor view = tensor.view({3, 1, 4});
  EXPECT_EQ(view.shape(), Shape({3, 1, 4}));
  EXPECT_EQ(view.bytes(), tensor.bytes());
  EXPECT_THROW((void)tensor.view({13}), ShapeError);
}

TEST(Tensor, SliceTakesRows) {
  Tensor tensor = random_tensor({5, 2, 3}, 1);
  const Tensor whole = tensor;
  const Tensor slice = tensor.slice(1, 3).slice(1, 2);
  tensor = Tensor();
  EXPECT_EQ(slice.shape(), Shape({2, 2, 3}));
  EXPECT_EQ(slice.data<float>(), whole.data<float>() + 2 * 6);
  EXPECT_EQ(whole.slice(5, 0).numel(), 0);
}

TEST(Tensor, SliceOutsideIsRefused) {
  const Tensor tensor = Tensor::zeros({5, 2}, Dtype::kF32);
  EXPECT_THROW((void)tensor.slice(-1, 1), ShapeError);
  EXPECT_THROW((void)tensor.slice(0, -1), ShapeError);
  EXPECT_THROW((void)tensor.slice(3, 3), ShapeError);
  EXPECT_THROW((void)tensor.slice(INT64_MAX, 1), ShapeError);
  EXPECT_THROW((void)Tensor::zeros({}, Dtype::kF32).slice(0, 1), ShapeError);
}

TEST(Tensor, DryHasAShapeAndNoMemory) {
  const Tensor tensor = Tensor::zeros({int64_t{1} << 40}, Dtype::kF32, Device::kDry);
  EXPECT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.data<float>(), nullptr);
  EXPECT_EQ(tensor.slice(5, 10).bytes(), nullptr);
  EXPECT_THROW((void)to_row_major(tensor), DeviceError);
}

TEST(RowMajor, MovesEachElementToItsPlace) {
  constexpr int64_t n = 2, c = 3, h = 4, w = 5;
  Tensor tensor = Tensor::empty({n, c, h, w}, Dtype::kI32);
  std::iota(tensor.data<int32_t>(), tensor.data<int32_t>() + tensor.numel(), 0);
  const Tensor row_major = to_row_major(tensor);
  ASSERT_EQ(row_major.shape(), tensor.shape());
  const int32_t* got = row_major.data<int32_t>();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) ASSERT_EQ(*got++, ((i * h + y) * w + x) * c + j);
      }
    }
  }
}

TEST(RowMajor, RoundTripsEveryRankAndDtype) {
  for (const Shape& shape : {Shape(),
                             Shape({5}),
                             Shape({2, 3}),
                             Shape({2, 3, 4}),
                             Shape({2, 3, 4, 5}),
                             Shape({1, 7, 1, 1}),
                             Shape({2, 0, 3, 3})}) {
    for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kU8, Dtype::kI64}) {
      Tensor tensor = Tensor::empty(shape, dtype);
      for (size_t i = 0; i < tensor.nbytes(); ++i) tensor.bytes()[i] = static_cast<std::byte>(i);
      EXPECT_TRUE(same_bits(from_row_major(to_row_major(tensor)), tensor));
      EXPECT_TRUE(same_bits(to_row_major(from_row_major(tensor)), tensor));
      if (shape.rank() != 4) {
        EXPECT_TRUE(same_bits(to_row_major(tensor), tensor));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::tensor_test
