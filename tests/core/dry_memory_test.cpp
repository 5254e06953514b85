
#include <gtest/gtest.h>

#include "core/tensor.h"

namespace lockstep::dry_memory_test {
namespace {

TEST(DryMemory, CountsTensorsUntilTheirLastCopyEnds) {
  const int64_t before = dry_memory().bytes_in_use;
  Tensor tensor = Tensor::empty({1024}, Dtype::kF32, Device::kDry);
  const int64_t one = dry_memory().bytes_in_use - before;
  EXPECT_GE(one, 4096);
  Tensor row = tensor.view({32, 32}).slice(3, 1);
  tensor = {};
  EXPECT_EQ(dry_memory().bytes_in_use, before + one);
  row = {};
  EXPECT_EQ(dry_memory().bytes_in_use, before);
}

TEST(DryMemory, PeakIsSinceItsBeginning) {
  const Tensor kept = Tensor::zeros({256}, Dtype::kF32, Device::kDry);
  {
    const Tensor ended = Tensor::empty({1 << 20}, Dtype::kF32, Device::kDry);
  }
  const int64_t now = dry_memory().bytes_in_use;
  EXPECT_GE(dry_memory().peak_bytes_in_use, now + (4 << 20));
  begin_dry_peak();
  EXPECT_EQ(dry_memory().peak_bytes_in_use, now);
}

TEST(DryMemory, HasNoMemory) {
  Tensor tensor = Tensor::empty({4}, Dtype::kF32, Device::kDry);
  EXPECT_EQ(tensor.data<float>(), nullptr);
}

}  // namespace
}  // namespace lockstep::dry_memory_test
