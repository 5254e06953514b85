// Memory and copies of the fake runtime.
#include <array>

#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::fake_memory_test {
namespace {

using namespace testing;

using Floats = std::array<float, 4>;
constexpr size_t kBytes = sizeof(Floats);

class FakeMemory : public RuntimeTest {
 protected:
  FakeMemory() {
    EXPECT_EQ(cudaMalloc(&device_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&pinned_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~FakeMemory() override {
    EXPECT_EQ(cudaFree(device_), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned_), cudaSuccess);
  }

  Floats& pinned() { return *static_cast<Floats*>(pinned_); }

  void* device_ = nullptr;
  void* pinned_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(FakeMemory, IsPoisonedWhenFresh) {
  Floats host{};
  ASSERT_EQ(cudaMemcpy(&host, device_, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  for (const float value : host) EXPECT_TRUE(std::isnan(value));
  for (const float value : pinned()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(FakeMemory, OrdinaryMemoryIsReadAtTheCall) {
  Floats host = {1, 2, 3, 4}, back{};
  ASSERT_EQ(cudaMemcpyAsync(device_, &host, kBytes, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  host = {9, 9, 9, 9};
  ASSERT_EQ(cudaMemcpyAsync(&back, device_, kBytes, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_EQ(back, (Floats{1, 2, 3, 4}));  // there on return
}

TEST_F(FakeMemory, PinnedMemoryIsReadAndWrittenLate) {
  pinned() = {1, 2, 3, 4};
  ASSERT_EQ(cudaMemcpyAsync(device_, pinned_, kBytes, cudaMemcpyDefault, stream_), cudaSuccess);
  pinned() = {5, 6, 7, 8};
  Floats back{};
  ASSERT_EQ(cudaMemcpyAsync(&back, device_, kBytes, cudaMemcpyDefault, stream_), cudaSuccess);
  EXPECT_EQ(back, (Floats{5, 6, 7, 8}));
  ASSERT_EQ(cudaMemsetAsync(device_, 0, kBytes, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned_, device_, kBytes, cudaMemcpyDefault, stream_), cudaSuccess);
  EXPECT_EQ(pinned(), (Floats{5, 6, 7, 8}));
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(pinned(), (Floats{}));
}

TEST_F(FakeMemory, RefusesWrongKinds) {
  Floats host{};
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, kBytes, kind, stream_);
  };
  EXPECT_EQ(copy(device_, &host, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device_, &host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device_, pinned_, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(&host, device_, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(&host, pinned_, cudaMemcpyHostToHost), cudaSuccess);
  EXPECT_EQ(copy(device_, device_, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(&host, 0, kBytes, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(FakeMemory, RefusesToLeaveABlock) {
  std::array<float, 5> host{};
  constexpr auto kKind = cudaMemcpyHostToDevice;
  EXPECT_EQ(cudaMemcpy(device_, &host, kBytes + 4, kKind), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(static_cast<std::byte*>(device_) + 4, &host, kBytes, kKind),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(device_, 0, kBytes + 1), cudaErrorInvalidValue);
}

TEST_F(FakeMemory, IsFreedOnceAndAsWhatItIs) {
  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, 8), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(block), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(static_cast<std::byte*>(block) + 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
  EXPECT_EQ(cudaFree(block), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&block, 0), cudaSuccess);
  EXPECT_EQ(block, nullptr);
}

TEST_F(FakeMemory, IsLimited) {
  const size_t held = emulation::device_bytes_in_use();
  reset_runtime({.devices = {{.memory_bytes = held + 1024}},
                 .pinned_bytes = emulation::pinned_bytes_in_use() + 10});
  void* block = nullptr;
  EXPECT_EQ(cudaMalloc(&block, 1025), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMallocHost(&block, 11), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&block, 60), cudaSuccess);
  size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, 512U);  // in units of 512 bytes
  EXPECT_EQ(total, held + 1024);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&block, 1024), cudaSuccess);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
}

TEST_F(FakeMemory, KnowsWhatAPointerIs) {
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, static_cast<std::byte*>(device_) + 5),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned_), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &attributes), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

}  // namespace
}  // namespace lockstep::fake_memory_test
