#include "tests/reference/crop_flip_normalize.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "data/dataset.h"
#include "kernels/image/normalize_image.h"
#include "tests/support/augmented_images.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::crop_flip_normalize_test {
namespace {

using testing::AugmentedImages;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::same_bits;

bool is_mirrored(const AugmentedImages& images) {
  return images.params.augmentation.pad_mode == PadMode::kReflect;
}

Tensor reference_of(const AugmentedImages& images) {
  const Shape& shape = images.in.shape();
  const auto& [mean, std] = images.params.normalize;
  Tensor out = Tensor::empty(shape, Dtype::kF32);
  for (int64_t n = 0; n < shape[0]; ++n) {
    const CropFlip change = images.draw(n);
    const reference::CropFlipNormalizeGeometry geometry{.channels = shape[1],
                                                        .height = shape[2],
                                                        .width = shape[3],
                                                        .pad = images.params.augmentation.pad,
                                                        .mirrored = is_mirrored(images),
                                                        .top = change.top,
                                                        .left = change.left,
                                                        .flip = change.flip};
    const int64_t first = n * shape.stride0();
    std::ranges::copy(
        reference::crop_flip_normalize(images.in.data<uint8_t>() + first, geometry, mean, std),
        out.data<float>() + first);
  }
  return out;
}

// By way of bytes, as the loader and normalize_image do it.
Tensor in_two_passes(Stream& stream,
                     const Shards& shards,
                     const AugmentedImages& images,
                     Dtype dtype) {
  const Shape& shape = images.in.shape();
  const data::ImageShape image{shape[1], shape[2], shape[3]};
  Tensor bytes = Tensor::empty(shape, Dtype::kU8);
  for (int64_t n = 0; n < shape[0]; ++n) {
    Tensor to = bytes.slice(n, 1);
    data::crop_flip(image,
                    images.params.augmentation,
                    images.draw(n),
                    images.in.slice(n, 1).span<const uint8_t>(),
                    to.span<uint8_t>());
  }
  Tensor out = Tensor::empty(shape, dtype);
  normalize_image(stream, shards, bytes, images.params.normalize, out);
  return out;
}

class CropFlipNormalizeCases : public ::testing::TestWithParam<Shape> {};

TEST_P(CropFlipNormalizeCases, EqualsReferenceAndTwoPassesBitForBit) {
  for (const AugmentedImages& images : AugmentedImages::of_each_kind(GetParam())) {
    const Tensor want = reference_of(images);
    for (const int threads : {1, 3}) {
      Stream stream(Device::kCpu, threads);
      const Shards shards = Shards::cut(GetParam()[0], 2, 1);
      for (const Dtype dtype : kFloatTypes) {
        Tensor out = poisoned_tensor(GetParam(), dtype);
        crop_flip_normalize(stream, shards, images.in, images.indices, images.params, out);
        EXPECT_TRUE(same_bits(out, rounded_to(dtype, want)))
            << name_of(dtype) << ", pad " << images.params.augmentation.pad << ", mirrored "
            << is_mirrored(images) << ", " << threads << " threads";
        EXPECT_TRUE(same_bits(in_two_passes(stream, shards, images, dtype), out));
      }
    }
  }
}

TEST_P(CropFlipNormalizeCases, EveryLevelGivesTheSameBits) {
  Stream stream;
  const AugmentedImages images(GetParam(), 2, Flip::kRandom, PadMode::kReflect);
  const Tensor want = reference_of(images);
  for (CropFlipNormalize* body : LS_ISA_BODIES(crop_flip_normalize)) {
    for (const Dtype dtype : kFloatTypes) {
      Tensor out = poisoned_tensor(GetParam(), dtype);
      body(stream, Shards::single(GetParam()[0]), images.in, images.indices, images.params, out);
      EXPECT_TRUE(same_bits(out, rounded_to(dtype, want))) << name_of(dtype);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Shapes,
    CropFlipNormalizeCases,
    ::testing::Values(Shape{40, 3, 8, 9}, Shape{7, 1, 5, 3}, Shape{3, 4, 3, 6}, Shape{0, 3, 4, 4}));

TEST(CropFlipNormalize, DependsOnSeedEpochAndIndexAlone) {
  Stream stream;
  const auto result = [&](const AugmentedImages& images) {
    Tensor out = poisoned_tensor(images.in.shape(), Dtype::kF32);
    crop_flip_normalize(stream, Shards::single(20), images.in, images.indices, images.params, out);
    return out;
  };
  AugmentedImages images({20, 1, 6, 6}, 3, Flip::kRandom);
  const Tensor first = result(images);
  EXPECT_TRUE(same_bits(result(images), first));
  AugmentedImages other = images;
  other.params.epoch += 1;
  EXPECT_FALSE(same_bits(result(other), first));
  other = images;
  other.params.augmentation.seed += 1;
  EXPECT_FALSE(same_bits(result(other), first));
  // One image alone gets what it got in the batch.
  Tensor alone = poisoned_tensor({1, 1, 6, 6}, Dtype::kF32);
  crop_flip_normalize(stream,
                      Shards::single(1),
                      images.in.slice(7, 1),
                      images.indices.slice(7, 1),
                      images.params,
                      alone);
  EXPECT_TRUE(same_bits(alone, first.slice(7, 1)));
}

TEST(CropFlipNormalize, RejectsOtherShapes) {
  Stream stream;
  const AugmentedImages images({2, 3, 4, 5}, 1, Flip::kRandom);
  Tensor out = Tensor::zeros({2, 3, 4, 5}, Dtype::kF32);
  const auto run = [&](const Shards& shards,
                       const Tensor& indices,
                       const CropFlipNormalizeParams& params,
                       Tensor& to) {
    crop_flip_normalize(stream, shards, images.in, indices, params, to);
  };
  const Shards two = Shards::single(2);
  Tensor integers = Tensor::zeros(out.shape(), Dtype::kI32);
  Tensor other = Tensor::zeros({2, 3, 5, 4}, Dtype::kF32);
  EXPECT_NO_THROW(run(two, images.indices, images.params, out));
  EXPECT_THROW(run(Shards::single(1), images.indices, images.params, out), ShapeError);
  EXPECT_THROW(run(two, Tensor::zeros({3}, Dtype::kI64), images.params, out), ShapeError);
  EXPECT_THROW(run(two, Tensor::zeros({2}, Dtype::kI32), images.params, out), DtypeError);
  EXPECT_THROW(run(two, images.indices, images.params, integers), DtypeError);
  EXPECT_THROW(run(two, images.indices, images.params, other), ShapeError);
  CropFlipNormalizeParams params = images.params;
  params.normalize.std.pop_back();
  EXPECT_THROW(run(two, images.indices, params, out), ShapeError);
  params = images.params;
  for (const int64_t pad : {int64_t{-1}, int64_t{5}}) {
    params.augmentation.pad = pad;
    try {
      run(two, images.indices, params, out);
      FAIL() << "no error";
    } catch (const ShapeError& error) {
      EXPECT_STREQ(error.what(),
                   "[crop_flip_normalize] required: 0 <= pad, at most the image's height and "
                   "width, less where it is mirrored");
    }
  }
}

TEST(CropFlipNormalize, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor in = Tensor::empty({2, 1, 4, 4}, Dtype::kU8, Device::kDry);
  const Tensor indices = Tensor::empty({2}, Dtype::kI64, Device::kDry);
  Tensor out = Tensor::empty({2, 1, 4, 4}, Dtype::kF16, Device::kDry);
  crop_flip_normalize(stream, Shards::single(2), in, indices, {}, out);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 32 * 3 + 16);
}

}  // namespace
}  // namespace lockstep::kernels::crop_flip_normalize_test
