#include "core/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include <sys/mman.h>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

class SystemMemory : public MemorySource {
 public:
  void* allocate(size_t bytes) override {
    const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
    void* block = nullptr;
    if (posix_memalign(&block, alignment, bytes) != 0) return nullptr;
    if (bytes >= kHugePage) madvise(block, bytes, MADV_HUGEPAGE);  // fewer page faults; a hint only
    return block;
  }
  void free(void* block) override { std::free(block); }
  std::string exhausted() const override { return "out of memory"; }
};

}  // namespace

CachingAllocator::~CachingAllocator() {
  release_cache();
}

size_t CachingAllocator::rounded(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return bytes;  // never to be had; rounding could wrap around
  if (bytes <= kAlignment * 8)
    return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) & ~(step - 1);
}

void* CachingAllocator::allocate(size_t bytes) {
  const size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  void* block = nullptr;
  const auto found = cache_.find(size);
  if (found != cache_.end() && !found->second.empty()) {
    block = found->second.back();
    found->second.pop_back();
    stats_.bytes_cached -= size;
  } else {
    block = source_.allocate(size);
    if (block == nullptr) {
      release_cache();
      block = source_.allocate(size);
    }
    if (block == nullptr) {
      throw EnvironmentError(fmt::format("{}: {} bytes more are needed", source_.exhausted(), size),
                             fmt::format("{} bytes are in use already", stats_.bytes_in_use),
                             "a smaller batch (-b) or fewer ranks on this host");
    }
    ++stats_.system_allocations;
  }
  stats_.bytes_in_use += size;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return block;
}

void CachingAllocator::free(void* block, size_t bytes) {
  const size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= size;
  if (!keep_) return source_.free(block);
  cache_[size].push_back(block);
  stats_.bytes_cached += size;
}

void CachingAllocator::discard(void* block, size_t bytes) {
  const std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= rounded(bytes);
  source_.free(block);
}

AllocatorStats CachingAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void CachingAllocator::release_cache() {
  for (auto& [size, blocks] : cache_) {
    for (void* block : blocks) source_.free(block);
  }
  cache_.clear();
  stats_.bytes_cached = 0;
}

MemorySource& system_memory() {
  static SystemMemory& memory = *new SystemMemory;  // outlives every static tensor
  return memory;
}

CachingAllocator& cpu_allocator() {
  static CachingAllocator& allocator = *new CachingAllocator(system_memory());
  return allocator;
}

}  // namespace lockstep
