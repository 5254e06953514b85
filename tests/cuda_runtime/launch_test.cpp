#include "core/cuda/launch.h"

#include <gmock/gmock.h>

#include "core/cuda/error.h"
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::launch_test {
namespace {

using namespace testing;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

constexpr int kEnvironment = static_cast<int>(ExitCode::kEnvironment);

struct Table {
  std::byte bytes[40'000];
};
__global__ void table_kernel(const Table) {}

class CudaLaunch : public RuntimeTest {
 protected:
  std::string error_of(const cuda::LaunchShape& shape) {
    try {
      launch_nothing(stream_, shape);
    } catch (const cuda::CudaError& error) {
      EXPECT_EQ(error.code(), ExitCode::kEnvironment);
      EXPECT_FALSE(error.sticky());
      return format_error(error);
    }
    return "";
  }

  Stream stream_{Device::kCuda};
};

TEST_F(CudaLaunch, ArgumentsAreCopied) {
  Tensor tensor = device_floats(3);
  float value = 2;
  cuda::launch(stream_, "fill", {1, 32}, fill_kernel, tensor.data<float>(), value, int64_t{3});
  value = 7;
  EXPECT_EQ(to_cpu(stream_, tensor).data<float>()[0], 2);
}

TEST_F(CudaLaunch, AnEmptyGridIsNoLaunch) {
  runtime_counters = {};
  for (const dim3 grid : {dim3(0), dim3(1, 0), dim3(1, 1, 0)}) EXPECT_EQ(error_of({grid, 32}), "");
  EXPECT_EQ(runtime_counters.launches, 0);
}

TEST_F(CudaLaunch, TooLargeIsSaidWithTheShape) {
  const char* const hint =
      "  try: nvidia-smi, if it is the device's state; else please report it: a bug in Lockstep\n";
  EXPECT_EQ(error_of({{1, 2, 3}, {1024, 2}, 16}),
            std::string("lockstep: error: [nothing] CUDA: invalid configuration argument (9)\n"
                        "  why: (1,2,3) blocks of (1024,2,1) threads, 16 bytes of dynamic shared "
                        "memory\n") +
                hint);
  EXPECT_EQ(error_of({1, 32, 300 << 10}),
            std::string("lockstep: error: [nothing] CUDA: invalid argument (1)\n"
                        "  why: (1,1,1) blocks of (32,1,1) threads, 307200 bytes of dynamic shared "
                        "memory\n") +
                hint);
  for (const cuda::LaunchShape& shape : {cuda::LaunchShape{{1, 65536}, 32},
                                         {{1, 1, 65536}, 32},
                                         {{1U << 31}, 32},
                                         {1, {1, 1, 65}},
                                         {1, 0}})
    EXPECT_THAT(error_of(shape), HasSubstr("invalid configuration argument"));
  EXPECT_THROW(cuda::launch(stream_, "op", {1, 32}, table_kernel, Table{}), cuda::CudaError);
  EXPECT_EQ(error_of({{(1U << 31) - 1, 0, 1}, 32}), "");
  EXPECT_EQ(error_of({1, 1024, 227 << 10}), "");
  stream_.synchronize();
}

TEST_F(CudaLaunch, BlocksAreCountedBeyond32Bits) {
  EXPECT_EQ(cuda::blocks_for(0, 256), 0U);
  EXPECT_EQ(cuda::blocks_for(256, 256), 1U);
  EXPECT_EQ(cuda::blocks_for(257, 256), 2U);
  EXPECT_EQ(cuda::blocks_for(int64_t{INT32_MAX} * 256, 256), static_cast<unsigned>(INT32_MAX));
  EXPECT_THROW((void)cuda::blocks_for(int64_t{INT32_MAX} * 256 + 1, 256), ShapeError);
  EXPECT_THROW((void)cuda::blocks_for((int64_t{1} << 32) * 256 + 1, 256), ShapeError);
}

TEST_F(CudaLaunch, StreamsOfAnotherDeviceAreRefused) {
  reset_runtime({.devices = {{}, {}}});
  Stream stream(Device::kCuda);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);  // as a thread that has not called ensure_device
  EXPECT_THROW(launch_nothing(stream, {1, 32}), cuda::CudaError);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  launch_nothing(stream, {1, 32});
}

TEST_F(CudaLaunch, AFaultStaysAndNamesWhoMeetsIt) {
  Tensor tensor = device_floats(3);
  Tensor pinned = cuda::empty_pinned({3}, Dtype::kF32);
  fail(stream_);  // queued, and nobody knows yet
  const std::string rest =
      "CUDA: unspecified launch failure (719)\n"
      "  why: a kernel failed, this op's or an earlier one's; the device is lost to this process\n"
      "  try: CUDA_LAUNCH_BLOCKING=1, or compute-sanitizer, which name the kernel\n";
  const auto meets = [&](const std::string& op, auto&& body) {
    try {
      body();
      ADD_FAILURE() << op << " met no error";
    } catch (const cuda::CudaError& error) {
      EXPECT_TRUE(error.sticky());
      EXPECT_EQ(format_error(error), "lockstep: error: [" + op + "] " + rest);
    }
  };
  meets("synchronize", [&] { stream_.synchronize(); });
  for (int i = 0; i < 2; ++i) {
    meets("fill", [&] { fill(stream_, tensor, 1); });
    meets("copy", [&] { transfer(stream_, pinned, tensor); });
    meets("stream", [&] { const Stream another(Device::kCuda); });
    meets("event", [&] { const cuda::Event event; });
    meets("allocate", [&] { (void)device_floats(12345); });
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  }
}

TEST_F(CudaLaunch, EagerStreamsNameTheOpItself) {
  set_stream_order(StreamOrder::kEager);
  try {
    fail(stream_);
    FAIL() << "no error";
  } catch (const cuda::CudaError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[faulty]"));
  }
}

class FaultyProgram : public ProcessTest {};

TEST_F(FaultyProgram, EndsWithItsExitCode) {
  EXPECT_EXIT(run_as_program([] {
                Stream stream(Device::kCuda);
                Tensor tensor = device_floats(3);
                fail(stream);
                (void)to_cpu(stream, tensor);
              }),
              ExitedWithCode(kEnvironment),
              HasSubstr("[copy] CUDA: unspecified launch failure (719)"));
}

TEST(CudaErrors, SayWhatTheDeviceLacks) {
  const cuda::CudaError error("relu", cudaErrorNoKernelImageForDevice);
  EXPECT_FALSE(error.sticky());
  EXPECT_EQ(format_error(error),
            "lockstep: error: [relu] CUDA: no kernel image is available for execution on the "
            "device (209)\n"
            "  why: this build's kernels are for other devices, or for a newer driver\n"
            "  try: cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=native, or a newer driver\n");
  EXPECT_TRUE(cuda::CudaError("relu", cudaErrorIllegalAddress).sticky());
  EXPECT_TRUE(cuda::CudaError("relu", cudaErrorMisalignedAddress).sticky());
  EXPECT_TRUE(cuda::CudaError("relu", cudaErrorECCUncorrectable).sticky());
}

}  // namespace
}  // namespace lockstep::launch_test
