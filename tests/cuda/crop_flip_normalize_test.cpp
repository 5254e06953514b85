#include <tuple>

#include "kernels/image/normalize_image.h"
#include "tests/support/augmented_images.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"

namespace lockstep::kernels::crop_flip_normalize_test {
namespace {

using testing::AugmentedImages;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::same_bits;

class CudaCropFlipNormalize : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {};

TEST_P(CudaCropFlipNormalize, HasTheBitsOfTheCpuRounded) {
  const auto& [dtype, shape] = GetParam();
  const Shards shards = Shards::cut(shape[0], 2, 1);
  for (const AugmentedImages& images : AugmentedImages::of_each_kind(shape)) {
    Stream cpu;
    Tensor want = poisoned_tensor(shape, Dtype::kF32);
    crop_flip_normalize(cpu, shards, images.in, images.indices, images.params, want);
    Tensor out = poisoned(shape, dtype);
    crop_flip_normalize(
        stream_, shards, upload(images.in), upload(images.indices), images.params, out);
    EXPECT_TRUE(same_bits(download(out), rounded_to(dtype, want)))
        << "pad " << images.params.augmentation.pad << ", flip "
        << static_cast<int>(images.params.augmentation.flip);
  }
}

// Into memory that allows no packs, around which nothing is written.
TEST_P(CudaCropFlipNormalize, GoesOneByOneWhereMemoryIsMisaligned) {
  const auto& [dtype, shape] = GetParam();
  const AugmentedImages images(shape, 2, Flip::kRandom);
  const Shards shards = Shards::single(shape[0]);
  Tensor whole = poisoned(shape, dtype);
  Tensor room = poisoned({whole.numel() + 2}, dtype);
  Tensor shifted = room.slice(1, whole.numel()).view(shape);
  const Tensor in = upload_misaligned(images.in);
  const Tensor indices = upload_misaligned(images.indices);
  crop_flip_normalize(stream_, shards, in, indices, images.params, whole);
  crop_flip_normalize(stream_, shards, in, indices, images.params, shifted);
  EXPECT_TRUE(same_bits(download(shifted), download(whole)));
  const Tensor untouched = poisoned_tensor({1}, dtype);
  EXPECT_TRUE(same_bits(download(room).slice(0, 1), untouched));
  EXPECT_TRUE(same_bits(download(room).slice(whole.numel() + 1, 1), untouched));
}

// The third fills more than one block; the last two have no whole number of packs.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaCropFlipNormalize,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{5, 3, 8, 8},
                                                              Shape{3, 4, 3, 6},
                                                              Shape{2, 3, 32, 64},
                                                              Shape{4, 1, 5, 3},
                                                              Shape{0, 3, 5, 5})));

class CudaCropFlipNormalizeErrors : public testing::CudaTest {};

// One value per thread, since memory is misaligned, would need more blocks than a grid has rows.
TEST_F(CudaCropFlipNormalizeErrors, TakesAHugeImage) {
  const Shape shape{1, 3, 3345, 3345};
  const AugmentedImages images(shape, 0, Flip::kNone);
  Stream cpu(Device::kCpu);
  Tensor want = poisoned_tensor(shape, Dtype::kF32);
  const Shards shards = Shards::single(1);
  crop_flip_normalize(cpu, shards, images.in, images.indices, images.params, want);
  Tensor room = poisoned({want.numel() + 1}, Dtype::kF32);
  Tensor out = room.slice(1, want.numel()).view(shape);
  crop_flip_normalize(
      stream_, shards, upload(images.in), upload(images.indices), images.params, out);
  EXPECT_TRUE(same_bits(download(out), want));
}

TEST_F(CudaCropFlipNormalizeErrors, NamesTooManyChannels) {
  const AugmentedImages images({1, 65, 1, 1}, 0, Flip::kNone);
  Tensor out = poisoned({1, 65, 1, 1}, Dtype::kF32);
  try {
    crop_flip_normalize(
        stream_, Shards::single(1), upload(images.in), upload(images.indices), images.params, out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[crop_flip_normalize] channels: got 65, expected 64 at most on CUDA");
  }
}

}  // namespace
}  // namespace lockstep::kernels::crop_flip_normalize_test
