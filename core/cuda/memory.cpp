#include "core/cuda/memory.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "core/allocator.h"
#include "core/check.h"
#include "core/cuda/device.h"
#include "core/cuda/error.h"
#include "core/cuda/graph.h"
#include "core/cuda/watch.h"

namespace lockstep {
namespace {

class DeviceMemory : public MemorySource {
 public:
  void* allocate(size_t bytes) override {
    cuda::ensure_device();
    void* block = nullptr;
    cudaError_t status = cudaSuccess;
    if (cuda::is_recording_here()) {  // the graph's memory may grow while it is recorded
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
      cuda::check(cudaThreadExchangeStreamCaptureMode(&mode), "allocate");
      status = cudaMalloc(&block, bytes);
      cuda::check(cudaThreadExchangeStreamCaptureMode(&mode), "allocate");
    } else {
      status = cudaMalloc(&block, bytes);
    }
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // not a failure yet: the cache may be given back
      return nullptr;
    }
    cuda::check(status, "allocate");
    const std::lock_guard lock(mutex_);
    blocks_[block] = bytes;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    return block;
  }
  void free(void* block) override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = blocks_.find(block);
      held_ -= found->second;
      blocks_.erase(found);
    }
    cuda::tell_watch_of_end();
    cudaFree(block);
  }
  std::string out_of_memory_text() const override {
    size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "allocate");
    return fmt::format("out of device memory ({} of {} bytes are free)", free, total);
  }
  bool can_free() const override { return !cuda::is_recording_here(); }
  size_t peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> blocks_;
  size_t held_ = 0, peak_ = 0;
};

bool is_caching_enabled() {
  const char* const text = std::getenv("LOCKSTEP_NO_CUDA_CACHE");
  return text == nullptr || std::string_view(text) == "0";
}

DeviceMemory& device_memory() {
  static DeviceMemory& memory = *new DeviceMemory;  // outlives every static tensor
  return memory;
}

thread_local std::shared_ptr<CachingAllocator> used_pool;

}  // namespace

CachingAllocator& cuda_allocator() {
  static CachingAllocator& allocator = *new CachingAllocator(
      device_memory(), {.holds = "weights and what else stays", .keep = is_caching_enabled()});
  return allocator;
}

CachingAllocator& cuda_workspaces() {
  static CachingAllocator& allocator =
      *new CachingAllocator(device_memory(), {.holds = "workspace", .keep = false});
  return allocator;
}

namespace cuda {

namespace {

// Pieces are a 64th of the device's memory: large enough that few are needed, and small compared to
// the device.
CachingAllocator::Options pool_options(size_t expected) {
  ensure_device();
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "allocate");
  constexpr size_t kUnit = MemoryPool::kUnit;
  return {.holds = "activations and what else a step makes",
          .arena_bytes = std::max(kUnit, total / 64 / kUnit * kUnit),
          .smallest_in_arenas = 0,
          .arena_unit = kUnit,
          .first_arena_bytes = expected};
}

}  // namespace

MemoryPool::MemoryPool(size_t expected)
    : allocator_(std::make_shared<CachingAllocator>(device_memory(), pool_options(expected))) {}

void MemoryPool::hold() {
  allocator_->hold_arenas();
}

size_t MemoryPool::bytes_in_use() const {
  return allocator_->stats().bytes_in_use;
}

MemoryPool::Use::Use(const MemoryPool* pool) : changes_(pool != nullptr) {
  if (!changes_) return;
  LS_CHECK(used_pool == nullptr, "[memory_pool] another pool is in use");
  used_pool = pool->allocator_;
}

MemoryPool::Use::~Use() {
  if (changes_) used_pool.reset();
}

const std::shared_ptr<CachingAllocator>& pool_in_use() {
  return used_pool;
}

size_t peak_bytes() {
  return device_memory().peak_bytes();
}

Tensor empty_pinned(const Shape& shape, Dtype dtype) {
  ensure_device();
  wait_watched_streams();  // locking pages may wait for the device
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  void* block = nullptr;
  const cudaError_t status = cudaMallocHost(&block, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw EnvironmentError(
        fmt::format("out of page-locked memory: {} bytes more are needed", bytes),
        "CUDA could not lock that much of the host's memory",
        "ulimit -l, a smaller batch or fewer ranks on this host",
        Remedy::kSmallerBatch);
  }
  check(status, "allocate pinned memory");
  const std::shared_ptr<std::byte> memory(static_cast<std::byte*>(block), [](std::byte* ended) {
    tell_watch_of_end();
    cudaFreeHost(ended);
  });
  return Tensor::wrap(memory, shape, dtype, Device::kCpu);
}

void copy_when_idle(void* to, const void* from, size_t bytes) {
  ensure_device();
  wait_watched_streams();
  check(cudaDeviceSynchronize(), "copy");
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy");
  // cudaMemcpy returns early: from ordinary memory when the bytes are staged, within the device at
  // once. Our streams do not wait for the default stream.
  check(cudaDeviceSynchronize(), "copy");
}

void zero_when_idle(void* memory, size_t bytes) {
  ensure_device();
  wait_watched_streams();
  check(cudaDeviceSynchronize(), "zeros");
  check(cudaMemset(memory, 0, bytes), "zeros");
  check(cudaDeviceSynchronize(), "zeros");
}

}  // namespace cuda
}  // namespace lockstep
