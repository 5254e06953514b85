#include "kernels/image/erase_boxes.h"

#include <algorithm>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/image_boxes.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::erase_boxes_test {
namespace {

class CudaEraseBoxes : public testing::CudaTest {
 protected:
  void expect_the_cpus_bits(const Shape& shape, const Tensor& boxes) {
    for (const Dtype dtype : testing::kFloatTypes) {
      SCOPED_TRACE(name_of(dtype));
      Tensor want = testing::rounded_to(dtype, testing::random_tensor(shape, 1, -2, 2));
      Tensor got = upload(want);
      Stream cpu;
      const Shards shards = Shards::single(shape[0]);
      erase_boxes(cpu, shards, boxes, want);
      erase_boxes(stream_, shards, upload(boxes), got);
      EXPECT_TRUE(testing::same_bits(download(got), want));
    }
  }
};

TEST_F(CudaEraseBoxes, GivesTheCpusBits) {
  expect_the_cpus_bits({6, 3, 7, 9}, testing::boxes_of_each_kind());
  expect_the_cpus_bits({6, 1, 7, 9}, testing::boxes_of_each_kind());
}

TEST_F(CudaEraseBoxes, GivesTheCpusBitsForLargeBoxesAndForNone) {
  Tensor box = Tensor::zeros({1, 4}, Dtype::kI32);
  const int32_t edges[] = {3, 1, 30, 38};
  std::copy_n(edges, 4, box.data<int32_t>());
  expect_the_cpus_bits({1, 5, 40, 40}, box);
  expect_the_cpus_bits({0, 3, 4, 4}, Tensor::zeros({0, 4}, Dtype::kI32));
}

}  // namespace
}  // namespace lockstep::kernels::erase_boxes_test
