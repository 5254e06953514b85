// Where there is no GPU, an error says why: in a build without CUDA, and in one
// with CUDA on a machine without a device or a driver. tests/cuda_runtime has the rest.
#include <functional>

#include <gtest/gtest.h>

#include "core/allocator.h"
#include "core/cuda/device.h"
#include "core/cuda/memory.h"
#include "core/error.h"
#include "core/stream.h"
#include "core/transfer.h"

namespace lockstep::cuda_device_test {
namespace {

class NoDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::visible_devices() > 0) GTEST_SKIP() << "this machine has a GPU";
  }
};

TEST_F(NoDevice, IsSaidInThreeLines) {
  const std::function<void()> asks[] = {
      [] { cuda::select_device(0, 1); },
      [] { cuda::ensure_device(); },
      [] { (void)cuda::device_properties(); },
      [] { const Stream stream(Device::kCuda); },
      [] { const cuda::Event event; },
      [] { (void)Tensor::empty({1}, Dtype::kF32, Device::kCuda); },
      [] { (void)cuda::empty_pinned({1}, Dtype::kF32); },
  };
  for (const auto& ask : asks) {
    try {
      ask();
      ADD_FAILURE() << "no error";
    } catch (const EnvironmentError& error) {
      EXPECT_EQ(error.code(), ExitCode::kEnvironment);
      EXPECT_FALSE(error.why().empty()) << error.what();
      EXPECT_EQ(error.remedy(), Remedy::kCpu);
#if !defined(LOCKSTEP_CUDA)
      EXPECT_STREQ(error.what(), "this build has no CUDA");
#endif
    }
  }
}

TEST_F(NoDevice, TheOtherDevicesDoNotCare) {
  Stream cpu, dry(Device::kDry);
  const Tensor tensor = Tensor::zeros({3}, Dtype::kF32);
  EXPECT_EQ(to_cpu(cpu, tensor).bytes(), tensor.bytes());
  EXPECT_EQ(to_device(dry, tensor).device(), Device::kDry);
  cpu.synchronize();
  EXPECT_EQ(cpu.cuda(), nullptr);
}

}  // namespace
}  // namespace lockstep::cuda_device_test
