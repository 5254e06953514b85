#include "core/cuda/memory.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/allocator.h"
#include "core/check.h"
#include "core/cuda/error.h"
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::memory_test {
namespace {

using namespace testing;
using ::testing::ExitedWithCode;

constexpr size_t kMiB = size_t{1} << 20;

Tensor device_bytes(size_t bytes) {
  return Tensor::empty({static_cast<int64_t>(bytes)}, Dtype::kU8, Device::kCuda);
}

cudaPointerAttributes attributes_of(const void* at) {
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, at), cudaSuccess);
  return attributes;
}

class CudaMemory : public RuntimeTest {
 protected:
  // Leaves `bytes` of the device free.
  static void limit(size_t bytes) {
    reset_runtime({.devices = {{.memory_bytes = emulation::device_bytes_in_use() + bytes}}});
  }
};

TEST_F(CudaMemory, TensorsLieOnTheDevice) {
  const Tensor tensor = device_floats(100);
  EXPECT_EQ(tensor.device(), Device::kCuda);
  EXPECT_EQ(attributes_of(tensor.bytes()).type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes_of(tensor.slice(99, 1).bytes()).type, cudaMemoryTypeDevice);
}

TEST_F(CudaMemory, AStepAllocatesOnce) {
  const auto step = [] {
    const Tensor a = device_floats(1000);
    const Tensor b = device_floats(1000);
    const Tensor c = device_bytes(777);
  };
  step();
  runtime_counters = {};
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(runtime_counters.allocations, 0);
  EXPECT_EQ(runtime_counters.synchronizations, 0);
}

TEST_F(CudaMemory, WithoutACacheEachTensorIsAnAllocation) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_as_program([] {
                setenv("LOCKSTEP_NO_CUDA_CACHE", "1", 1);
                for (int i = 0; i < 3; ++i) (void)device_floats(10);
                LS_CHECK(runtime_counters.allocations == 3, "allocations");
                LS_CHECK(emulation::device_bytes_in_use() == 0, "bytes in use");
              }),
              ExitedWithCode(0),
              "");
}

TEST_F(CudaMemory, TheCacheIsGivenBackBeforeGivingUp) {
  limit(0);
  (void)cuda_allocator();  // what earlier tests left in the cache is gone with the first shortage
  EXPECT_THROW((void)device_bytes(64 * kMiB), EnvironmentError);
  limit(4 * kMiB);
  {
    const Tensor cached = device_bytes(3 * kMiB);
  }
  const Tensor larger = device_bytes(4 * kMiB);
  EXPECT_EQ(attributes_of(larger.bytes()).type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);  // the first attempt is no failure
}

TEST_F(CudaMemory, OutOfMemorySaysWantedHeldAndFree) {
  limit(0);
  EXPECT_THROW((void)device_bytes(64 * kMiB), EnvironmentError);  // empties the cache
  limit(6 * kMiB);
  const size_t total = emulation::device_bytes_in_use() + 6 * kMiB;
  const Tensor held = device_bytes(4 * kMiB);
  const size_t in_use = cuda_allocator().stats().bytes_in_use;
  try {
    (void)device_bytes(3 * kMiB);
    FAIL() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(format_error(error),
              fmt::format("lockstep: error: out of device memory ({} of {} bytes are free): {} "
                          "bytes more are needed\n"
                          "  why: in use: {:.1f} MiB of weights and what else stays\n"
                          "  try: a smaller batch or fewer ranks on this host\n",
                          2 * kMiB,
                          total,
                          3 * kMiB,
                          static_cast<double>(in_use) / static_cast<double>(kMiB)));
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  }
  EXPECT_EQ(cuda_allocator().stats().bytes_in_use, in_use);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaMemory, AllocatingInACaptureNamesTheAllocation) {
  Stream stream(Device::kCuda);
  ASSERT_EQ(cudaStreamBeginCapture(stream.cuda(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  try {
    (void)device_bytes(123 * kMiB);
    FAIL() << "no error";
  } catch (const cuda::CudaError& error) {
    EXPECT_EQ(error.status(), cudaErrorStreamCaptureUnsupported);
    EXPECT_STREQ(error.what(),
                 "[allocate] CUDA: operation not permitted when stream is capturing (900)");
  }
}

TEST_F(CudaMemory, ZerosAreThereOnReturnAndAfterWhatStreamsWereGiven) {
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  Stream stream(Device::kCuda);
  {
    Tensor given_back = Tensor::empty({2}, Dtype::kF32, Device::kCuda);
    ASSERT_EQ(cudaMemsetAsync(given_back.bytes(), 1, 8, stream.cuda()), cudaSuccess);
  }
  const Tensor zeros = to_cpu(Tensor::zeros({2}, Dtype::kF32, Device::kCuda));
  EXPECT_EQ(zeros.data<float>()[0], 0);
  EXPECT_EQ(zeros.data<float>()[1], 0);
}

TEST_F(CudaMemory, CopiesWithoutAStreamSeeWhatStreamsWereGiven) {
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  Stream stream(Device::kCuda);
  Tensor tensor = to_device(Device::kCuda, Tensor::zeros({3}, Dtype::kU8));
  ASSERT_EQ(cudaMemsetAsync(tensor.bytes(), 7, 3, stream.cuda()), cudaSuccess);
  EXPECT_EQ(to_cpu(tensor).data<uint8_t>()[2], 7);
  Tensor eights = Tensor::empty({3}, Dtype::kU8);
  std::ranges::fill(eights.span<uint8_t>(), uint8_t{8});
  overwrite(eights, tensor);
  EXPECT_EQ(to_cpu(stream, tensor).data<uint8_t>()[0], 8);
}

TEST_F(CudaMemory, PinnedTensorsAreTheCpus) {
  Tensor pinned = cuda::empty_pinned({2, 3}, Dtype::kF16);
  EXPECT_EQ(pinned.device(), Device::kCpu);
  EXPECT_EQ(pinned.nbytes(), 12U);
  EXPECT_EQ(attributes_of(pinned.bytes()).type, cudaMemoryTypeHost);
  const size_t held = emulation::pinned_bytes_in_use();
  pinned = Tensor();
  EXPECT_EQ(emulation::pinned_bytes_in_use(), held - 12);
  EXPECT_EQ(cuda::empty_pinned({0}, Dtype::kF32).numel(), 0);
}

TEST_F(CudaMemory, OutOfPinnedMemory) {
  reset_runtime({.pinned_bytes = emulation::pinned_bytes_in_use() + 10});
  try {
    (void)cuda::empty_pinned({11}, Dtype::kU8);
    FAIL() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(format_error(error),
              "lockstep: error: out of page-locked memory: 11 bytes more are needed\n"
              "  why: CUDA could not lock that much of the host's memory\n"
              "  try: ulimit -l, a smaller batch or fewer ranks on this host\n");
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaMemory, WorkspaceGrowsOnTheDevice) {
  Stream stream(Device::kCuda);
  const Workspace small = stream.workspace(100, 10);
  EXPECT_EQ(attributes_of(small.shared).type, cudaMemoryTypeDevice);
  EXPECT_EQ(small.of(0), small.shared + 128);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small.shared) % 64, 0U);
  EXPECT_EQ(stream.workspace(50, 0).shared, small.shared);
  const Workspace large = stream.workspace(3 * kMiB, 0);
  EXPECT_EQ(attributes_of(large.shared + 3 * kMiB - 1).type, cudaMemoryTypeDevice);
}

}  // namespace
}  // namespace lockstep::memory_test
