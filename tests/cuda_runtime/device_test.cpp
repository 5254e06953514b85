#include "core/cuda/device.h"

#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/check.h"
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::device_test {
namespace {

using namespace testing;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

constexpr int kEnvironment = static_cast<int>(ExitCode::kEnvironment);
constexpr int kInternal = static_cast<int>(ExitCode::kInternal);

class DeviceTest : public ProcessTest {
 protected:
  DeviceTest() { unsetenv("CUDA_VISIBLE_DEVICES"); }
};

TEST_F(DeviceTest, NoDriver) {
  reset_runtime({.driver_version = 0});
  EXPECT_EQ(cuda::visible_devices(), 0);
  EXPECT_EXIT(run_as_program([] { cuda::select_device(0, 1); }),
              ExitedWithCode(kEnvironment),
              HasSubstr(fmt::format("lockstep: error: CUDA has no driver\n"
                                    "  why: libcuda.so, which this build's CUDA {}.{} needs, is "
                                    "missing\n"
                                    "  try: nvidia-smi; for a container docker run --gpus all\n",
                                    CUDART_VERSION / 1000,
                                    CUDART_VERSION % 1000 / 10)));
}

TEST_F(DeviceTest, OldDriver) {
  reset_runtime({.driver_version = 11080});
  EXPECT_EXIT(run_as_program([] { const Stream stream(Device::kCuda); }),
              ExitedWithCode(kEnvironment),
              HasSubstr(fmt::format("lockstep: error: the CUDA driver is too old\n"
                                    "  why: it knows CUDA 11.8, this build uses {}.{}\n"
                                    "  try: a newer driver, or a build with an older toolkit\n",
                                    CUDART_VERSION / 1000,
                                    CUDART_VERSION % 1000 / 10)));
}

TEST_F(DeviceTest, NoDevice) {
  reset_runtime({.devices = {}});
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  EXPECT_EQ(cuda::visible_devices(), 0);
  const std::string message =
      "lockstep: error: no CUDA device is visible\n"
      "  why: no CUDA-capable device is detected (CUDA_VISIBLE_DEVICES=7)\n"
      "  try: nvidia-smi -L, or another mask\n";
  EXPECT_EXIT(run_as_program([] { cuda::select_device(0, 1); }),
              ExitedWithCode(kEnvironment),
              HasSubstr(message));
  EXPECT_EXIT(run_as_program([] { (void)device_floats(1); }),
              ExitedWithCode(kEnvironment),
              HasSubstr(message));
  EXPECT_EXIT(run_as_program([] { (void)cuda::empty_pinned({1}, Dtype::kF32); }),
              ExitedWithCode(kEnvironment),
              HasSubstr(message));
  EXPECT_EXIT(run_as_program([] { const cuda::Event event; }),
              ExitedWithCode(kEnvironment),
              HasSubstr(message));
}

TEST_F(DeviceTest, BrokenDriver) {
  reset_runtime({.start_error = cudaErrorSystemNotReady});
  EXPECT_EQ(cuda::visible_devices(), 0);
  EXPECT_EQ(cuda::find_obstacle()->kind, cuda::Obstacle::Kind::kBroken);
  EXPECT_EXIT(run_as_program([] { cuda::select_device(0, 1); }),
              ExitedWithCode(kEnvironment),
              HasSubstr("lockstep: error: CUDA does not start\n"
                        "  why: cudaErrorSystemNotReady: system not yet initialized\n"
                        "  try: systemctl start nvidia-fabricmanager"));
  reset_runtime({.start_error = cudaErrorUnknown});
  EXPECT_EXIT(run_as_program([] { cuda::select_device(0, 1); }),
              ExitedWithCode(kEnvironment),
              HasSubstr("\n  try: nvidia-smi, which must work first"));
}

TEST_F(DeviceTest, MoreRanksThanDevicesShareThem) {
  reset_runtime({.devices = {{}, {.name = "second"}}});
  EXPECT_EQ(cuda::visible_devices(), 2);
  EXPECT_EXIT(run_as_program([] {
                cuda::select_device(3, 4);
                throw EnvironmentError(cuda::device_properties().name);
              }),
              ExitedWithCode(kEnvironment),
              HasSubstr("lockstep: error: second\n"));
}

TEST_F(DeviceTest, KnowsADeviceByItsUuid) {
  reset_runtime({.devices = {{}, {}, {}}});
  EXPECT_EQ(cuda::visible_device("GPU-00000000-0000-0000-0000-000000000003"), 2);
  EXPECT_EQ(cuda::visible_device("GPU-00000000-0000-0000-0000-000000000004"), -1);
}

TEST_F(DeviceTest, OldArchitecture) {
  reset_runtime({.devices = {{.name = "Tesla V100", .major = 7, .minor = 0}}});
  EXPECT_EXIT(run_as_program([] { cuda::select_device(0, 1); }),
              ExitedWithCode(kEnvironment),
              HasSubstr("lockstep: error: Tesla V100 is too old for this build\n"
                        "  why: its compute capability is 7.0, the kernels need 8.0\n"
                        "  try: a newer device\n"));
}

TEST_F(DeviceTest, ChoosesByLocalRankForEveryThread) {
  reset_runtime({.devices = {{}, {.name = "second", .minor = 3, .multiprocessors = 7}}});
  EXPECT_EXIT(run_as_program([] {
                cuda::select_device(1, 2);
                cuda::select_device(1, 2);  // the same choice again
                const cuda::DeviceProperties& properties = cuda::device_properties();
                LS_CHECK(properties.index == 1 && properties.name == "second", "index or name");
                LS_CHECK(properties.major == 9 && properties.minor == 3, "capability");
                LS_CHECK(properties.multiprocessors == 7, "multiprocessors");
                LS_CHECK(properties.uuid == "GPU-00000000-0000-0000-0000-000000000002",
                         "uuid {}",
                         properties.uuid);
                std::thread([] {
                  const Tensor tensor = device_floats(3);
                  cudaPointerAttributes attributes{};
                  cudaPointerGetAttributes(&attributes, tensor.bytes());
                  LS_CHECK(attributes.device == 1, "device {}", attributes.device);
                  Stream stream(Device::kCuda);
                  launch_nothing(stream, {1, 32});
                  stream.synchronize();
                }).join();
                throw EnvironmentError("all was as it should be");
              }),
              ExitedWithCode(kEnvironment),
              HasSubstr("all was as it should be"));
}

TEST_F(DeviceTest, AProcessHasOneDevice) {
  reset_runtime({.devices = {{}, {}}});
  EXPECT_EXIT(run_as_program([] {
                cuda::select_device(1, 2);
                cuda::select_device(0, 2);
              }),
              ExitedWithCode(kInternal),
              HasSubstr("[select_device] device: got 0, expected 1, which was chosen earlier"));
  EXPECT_EXIT(run_as_program([] {
                const Tensor early = device_floats(1);  // chooses device 0
                cuda::select_device(1, 2);
              }),
              ExitedWithCode(kInternal),
              HasSubstr("[select_device] device: got 1, expected 0"));
}

TEST_F(DeviceTest, RanksAreCounted) {
  EXPECT_EXIT(run_as_program([] { cuda::select_device(2, 2); }),
              ExitedWithCode(kInternal),
              HasSubstr("[select_device] local rank: got 2 of 2"));
}

}  // namespace
}  // namespace lockstep::device_test
