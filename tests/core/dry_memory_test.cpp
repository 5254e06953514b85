
#include <gtest/gtest.h>

#include "core/tensor.h"

namespace lockstep::dry_memory_test {
namespace {

TEST(DryMemory, CountsTensorsUntilTheirLastCopyEnds) {
  const int64_t before = dry_bytes_in_use();
  Tensor tensor = Tensor::empty({1024}, Dtype::kF32, Device::kDry);
  const int64_t one = dry_bytes_in_use() - before;
  EXPECT_GE(one, 4096);
  Tensor row = tensor.view({32, 32}).slice(3, 1);
  tensor = {};
  EXPECT_EQ(dry_bytes_in_use(), before + one);
  row = {};
  EXPECT_EQ(dry_bytes_in_use(), before);
}

TEST(DryRecord, CountsWhatIsMadeWhileItLives) {
  Tensor earlier = Tensor::zeros({256}, Dtype::kF32, Device::kDry);
  Tensor kept, later;
  {
    const DryRecord made;
    kept = Tensor::empty({300}, Dtype::kU8, Device::kDry);
    {
      const Tensor ended = Tensor::empty({1 << 20}, Dtype::kF32, Device::kDry);
    }
    earlier = {};
    EXPECT_EQ(made.bytes_in_use(), 512);
    EXPECT_EQ(made.peak_bytes_in_use(), 512 + (4 << 20));
    EXPECT_EQ(made.pool_bytes(), 512 + (4 << 20));
  }
  later = Tensor::empty({256}, Dtype::kF32, Device::kDry);
  const DryRecord next;
  kept = later = {};
  EXPECT_EQ(next.bytes_in_use(), 0);
  EXPECT_EQ(next.pool_bytes(), 0);
}

TEST(DryMemory, HasNoMemory) {
  Tensor tensor = Tensor::empty({4}, Dtype::kF32, Device::kDry);
  EXPECT_EQ(tensor.data<float>(), nullptr);
}

}  // namespace
}  // namespace lockstep::dry_memory_test
