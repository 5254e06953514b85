#include "kernels/image/mix_images.h"

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::mix_images_test {
namespace {

class CudaMixImages : public testing::CudaTest {
 protected:
  void expect_the_cpus_bits(const Shape& shape, const Shards& shards, bool aligned = true) {
    Tensor mix = Tensor::empty({1}, Dtype::kF32);
    *mix.data<float>() = 0.3F;
    for (const Dtype dtype : testing::kFloatTypes) {
      SCOPED_TRACE(name_of(dtype));
      Tensor want = testing::rounded_to(dtype, testing::random_tensor(shape, 1, -2, 2));
      Tensor got = aligned ? upload(want) : upload_misaligned(want);
      Stream cpu;
      mix_images(cpu, shards, mix, want);
      mix_images(stream_, shards, upload(mix), got);
      EXPECT_TRUE(testing::same_bits(download(got), want));
    }
  }
};

TEST_F(CudaMixImages, GivesTheCpusBitsAlignedOrNot) {
  Shards shards = Shards::single(12);
  shards.offsets = {0, 7, 7, 8, 12};
  for (const bool aligned : {true, false}) {
    expect_the_cpus_bits({12, 2, 4, 4}, shards, aligned);
    expect_the_cpus_bits({12, 3, 3, 3}, shards, aligned);
  }
}

// The second shard's pairs lie around the 4096 rows of a grid.
TEST_F(CudaMixImages, GivesTheCpusBitsForMoreImagesThanTheGridHasRows) {
  Shards shards = Shards::single(4101);
  shards.offsets = {0, 4095, 4101};
  expect_the_cpus_bits({4101, 1, 1, 1}, shards);
}

TEST_F(CudaMixImages, GivesTheCpusBitsForSeveralBlocksAndForNone) {
  expect_the_cpus_bits({3, 8, 20, 20}, Shards::single(3));
  expect_the_cpus_bits({0, 2, 2, 2}, Shards::single(0));
}

class CudaSwapBoxes : public testing::CudaTest {
 protected:
  void expect_the_cpus_bits(const Shape& shape, const Shards& shards, const Region& box) {
    for (const Dtype dtype : testing::kFloatTypes) {
      SCOPED_TRACE(name_of(dtype));
      Tensor want = testing::rounded_to(dtype, testing::random_tensor(shape, 1, -2, 2));
      Tensor got = upload(want);
      Stream cpu;
      swap_boxes(cpu, shards, box, want);
      swap_boxes(stream_, shards, box, got);
      EXPECT_TRUE(testing::same_bits(download(got), want));
    }
  }
};

TEST_F(CudaSwapBoxes, GivesTheCpusBits) {
  Shards shards = Shards::single(12);
  shards.offsets = {0, 7, 7, 8, 12};
  for (const Region& box : {Region{1, 2, 3, 2}, Region{0, 0, 5, 6}, Region{2, 2, 0, 3}}) {
    expect_the_cpus_bits({12, 3, 5, 6}, shards, box);
  }
  expect_the_cpus_bits({0, 2, 2, 2}, Shards::single(0), {0, 0, 1, 1});
}

TEST_F(CudaSwapBoxes, GivesTheCpusBitsForSeveralBlocksAndGridsOfRows) {
  expect_the_cpus_bits({3, 8, 20, 20}, Shards::single(3), {1, 3, 18, 16});
  Shards shards = Shards::single(4101);
  shards.offsets = {0, 4095, 4101};
  expect_the_cpus_bits({4101, 1, 1, 2}, shards, {0, 1, 1, 1});
}

}  // namespace
}  // namespace lockstep::kernels::mix_images_test
