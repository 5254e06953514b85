// The caching allocator: memory given back is kept for the next request of its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace lockstep {

struct AllocatorStats {
  int64_t system_allocations =
      0;  // requests that reached the system; constant after the first step
  size_t bytes_in_use = 0;
  size_t peak_bytes_in_use = 0;
  size_t bytes_cached = 0;
};

// Blocks are 64-byte aligned; their sizes are rounded to steps of an eighth of a power of two, so
// that at most 1/8 is lost and shapes of a step find last step's blocks. Thread safety: all
// functions may be called from any thread.
class CachingAllocator {
 public:
  CachingAllocator() = default;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;
  ~CachingAllocator();

  // Errors: EnvironmentError with the bytes wanted and held when the system has no more.
  void* allocate(size_t bytes);
  void free(void* block, size_t bytes);
  AllocatorStats stats() const;

  static size_t rounded(size_t bytes);

 private:
  void release_cache();

  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> cache_;
  AllocatorStats stats_;
};

CachingAllocator& cpu_allocator();

}  // namespace lockstep
