#include "kernels/image/mix_images.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/mix_images.h"
#include "tests/reference/swap_boxes.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/float_types.h"
#include "tests/support/golden.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::mix_images_test {
namespace {

using testing::close;
using testing::floats_of;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

Tensor weight(float value) {
  Tensor mix = Tensor::empty({1}, Dtype::kF32);
  *mix.data<float>() = value;
  return mix;
}

// Each call returns the same values. A row is longer than a block.
Tensor images(Dtype dtype, int64_t count) {
  return rounded_to(dtype, random_tensor({count, 3, 27, 27}, 1, -2, 2));
}

// 7, 0, 1 and 4 images.
Shards uneven_shards() {
  Shards shards = Shards::single(12);
  shards.offsets = {0, 7, 7, 8, 12};
  return shards;
}

std::vector<double> expected(const Shards& shards, const Tensor& from, double mix) {
  std::vector<double> want;
  for (int64_t k = 0; k < shards.local(); ++k) {
    reference::Rows rows;
    for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
      rows.push_back(values_of(from.slice(n, 1)));
    }
    for (const auto& row : reference::mix_images(rows, mix)) {
      want.insert(want.end(), row.begin(), row.end());
    }
  }
  return want;
}

TEST(MixImages, MatchesReferenceOnAnyNumberOfThreads) {
  const Shards shards = uneven_shards();
  for (const Dtype dtype : kFloatTypes) {
    const double rounding = dtype == Dtype::kF32   ? 0x1p-23
                            : dtype == Dtype::kF16 ? 0x1p-10
                                                   : 0x1p-7;
    for (const float mix : {0.0F, 0.3F, 0.5F, 1.0F}) {
      Tensor on_one_thread;
      for (const int threads : {1, 2, 3}) {
        Stream stream(Device::kCpu, threads);
        Tensor got = images(dtype, 12);
        mix_images(stream, shards, weight(mix), got);
        if (threads == 1) on_one_thread = got;
        EXPECT_TRUE(same_bits(got, on_one_thread));
        EXPECT_TRUE(close(
            floats_of(got), expected(shards, images(dtype, 12), mix), {rounding, 2 * rounding}))
            << name_of(dtype) << " " << mix;
      }
    }
  }
}

TEST(MixImages, SixteenBitImagesAreF32Rounded) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    Tensor got = images(dtype, 6);
    Tensor wide = rounded_to(Dtype::kF32, got);
    mix_images(stream, Shards::single(6), weight(0.7F), got);
    mix_images(stream, Shards::single(6), weight(0.7F), wide);
    EXPECT_TRUE(same_bits(got, rounded_to(dtype, wide)));
  }
}

TEST(MixImages, InstructionSetsAgree) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    Tensor want = images(dtype, 12);
    mix_images(stream, uneven_shards(), weight(0.3F), want);
    for (MixImages* body : LS_ISA_BODIES(mix_images)) {
      Tensor got = images(dtype, 12);
      body(stream, uneven_shards(), weight(0.3F), got);
      EXPECT_TRUE(same_bits(got, want));
    }
  }
}

TEST(MixImages, RejectsArgumentsThatDoNotFit) {
  Stream stream;
  Tensor four = images(Dtype::kF32, 4);
  Tensor bytes = Tensor::zeros({4, 1}, Dtype::kU8);
  EXPECT_THROW(mix_images(stream, Shards::single(3), weight(1), four), ShapeError);
  EXPECT_THROW(mix_images(stream, Shards::single(4), Tensor::zeros({2}, Dtype::kF32), four),
               ShapeError);
  EXPECT_THROW(mix_images(stream, Shards::single(4), weight(1), bytes), DtypeError);
}

TEST(MixImages, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor tensor = Tensor::empty({10, 2}, Dtype::kF16, Device::kDry);
  mix_images(stream, Shards::single(10), Tensor::empty({1}, Dtype::kF32, Device::kDry), tensor);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 80);
}

constexpr Region kBox = {.top = 3, .left = 20, .height = 11, .width = 7};

// The planes of channel c of the shard's images.
std::vector<reference::Plane> planes(const Tensor& images, int64_t c, int64_t begin, int64_t end) {
  const Shape& shape = images.shape();
  std::vector<reference::Plane> planes;
  for (int64_t n = begin; n < end; ++n) {
    reference::Plane plane;
    for (int64_t y = 0; y < shape[2]; ++y) {
      std::vector<double> row;
      for (int64_t x = 0; x < shape[3]; ++x) {
        const int64_t i = ((n * shape[2] + y) * shape[3] + x) * shape[1] + c;
        row.push_back(static_cast<double>(images.data<float>()[i]));
      }
      plane.push_back(row);
    }
    planes.push_back(plane);
  }
  return planes;
}

TEST(SwapBoxes, HasTheReferencesBitsAtEveryLevel) {
  const Shards shards = uneven_shards();
  const Tensor from = images(Dtype::kF32, 12);
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    for (SwapBoxes* body : LS_ISA_BODIES(swap_boxes)) {
      Tensor got = images(Dtype::kF32, 12);
      body(stream, shards, kBox, got);
      EXPECT_FALSE(same_bits(got, from));
      for (int64_t k = 0; k < shards.local(); ++k) {
        for (int64_t c = 0; c < 3; ++c) {
          EXPECT_EQ(planes(got, c, shards.begin(k), shards.begin(k + 1)),
                    reference::swap_boxes(planes(from, c, shards.begin(k), shards.begin(k + 1)),
                                          {.top = 3, .left = 20, .height = 11, .width = 7}));
        }
      }
    }
  }
}

TEST(SwapBoxes, SixteenBitValuesKeepTheirBits) {
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    Tensor got = images(dtype, 6);
    Tensor wide = rounded_to(Dtype::kF32, got);
    swap_boxes(stream, Shards::single(6), kBox, got);
    swap_boxes(stream, Shards::single(6), kBox, wide);
    EXPECT_TRUE(same_bits(got, rounded_to(dtype, wide)));
  }
}

// Of two images, one is the other's partner there too.
TEST(SwapBoxes, MixesAsTorchvision) {
  Stream stream;
  int boxes = 0;
  for (const testing::GoldenCase& golden : testing::golden_cases("image_boxes")) {
    if (!golden.name().starts_with("cut_")) continue;
    Tensor got = golden.tensor("images");
    const Region box = {.top = static_cast<int64_t>(golden.number("top")),
                        .left = static_cast<int64_t>(golden.number("left")),
                        .height = static_cast<int64_t>(golden.number("height")),
                        .width = static_cast<int64_t>(golden.number("width"))};
    swap_boxes(stream, Shards::single(2), box, got);
    EXPECT_TRUE(same_bits(got, golden.tensor("out"))) << golden.name();
    ++boxes;
  }
  EXPECT_GE(boxes, 5);
}

TEST(SwapBoxes, RejectsArgumentsThatDoNotFit) {
  Stream stream;
  Tensor four = images(Dtype::kF32, 4);
  Tensor bytes = Tensor::zeros({4, 1, 2, 2}, Dtype::kU8);
  EXPECT_THROW(swap_boxes(stream, Shards::single(3), {}, four), ShapeError);
  EXPECT_THROW(swap_boxes(stream, Shards::single(4), {}, bytes), DtypeError);
  for (const Region& outside : {Region{-1, 0, 2, 2},
                                Region{0, -1, 2, 2},
                                Region{0, 0, 28, 2},
                                Region{20, 26, 2, 2},
                                Region{0, 0, 2, -1}}) {
    EXPECT_THROW(swap_boxes(stream, Shards::single(4), outside, four), ShapeError);
  }
  EXPECT_NO_THROW(swap_boxes(stream, Shards::single(4), {0, 0, 27, 27}, four));
}

TEST(SwapBoxes, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor tensor = Tensor::empty({10, 2, 4, 4}, Dtype::kF16, Device::kDry);
  swap_boxes(stream, Shards::single(10), {1, 1, 2, 3}, tensor);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 2 * 10 * 2 * 6 * 2);
}

}  // namespace
}  // namespace lockstep::kernels::mix_images_test
