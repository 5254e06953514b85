// The caching allocator: memory given back is kept for the next request of its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep {

// First fit from the range's begin, so that what is never needed is never touched; free neighbors
// become one part. Thread safety: none.
class Arena {
 public:
  // Owns: nothing. Parts are aligned as `begin` is, to 4096 bytes at most.
  Arena(std::byte* begin, size_t bytes);

  // Null where no free part is as large.
  void* allocate(size_t bytes);
  void free(void* part);
  bool holds(const void* part) const;

  std::byte* begin() const { return begin_; }
  // From the begin to the end of the last byte that was ever allocated.
  size_t touched_bytes() const { return touched_; }

 private:
  struct Part {
    size_t bytes;
    bool free;
  };
  std::byte* begin_;
  size_t bytes_;
  size_t touched_ = 0;
  std::map<size_t, Part> parts_;  // by offset; without gaps
};

struct AllocatorStats {
  // Requests that took memory never used before; constant after the first steps.
  int64_t system_allocations = 0;
  size_t bytes_in_use = 0;
  size_t peak_bytes_in_use = 0;
  size_t bytes_cached = 0;
};

// The source of a caching allocator's blocks.
class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  // 64-byte aligned; null when there is no more.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* block) = 0;
  // Bytes to ask for at once, of which large blocks are cut; 0: each block by itself.
  virtual size_t arena_bytes() const { return 0; }
  // The message's first line: "out of memory", and what else is known of the memory's state.
  virtual std::string exhausted() const = 0;
};

// Blocks are 64-byte aligned. Below kLargeBlock their sizes are rounded to steps of an eighth of a
// power of two, so that at most 1/8 is lost and shapes of a step find last step's blocks. Larger
// ones are cut out of arenas, where the source gives such: sizes that follow each other through a
// step then share memory. Thread safety: all functions may be called from any thread.
class CachingAllocator {
 public:
  static constexpr size_t kLargeBlock = size_t{1} << 20;

  // Without `keep`, blocks go back to the source at once. Requires: `source` outlives this.
  explicit CachingAllocator(MemorySource& source, bool keep = true)
      : source_(source), keep_(keep) {}
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;
  ~CachingAllocator();

  // Errors: EnvironmentError with the bytes wanted and held when the system has no more.
  void* allocate(size_t bytes);
  void free(void* block, size_t bytes);
  // Gives a block whose size will not be asked for again back to the source.
  void discard(void* block, size_t bytes);
  AllocatorStats stats() const;

  static size_t rounded(size_t bytes);

 private:
  // Null where they have no such block.
  void* from_arenas(size_t size);
  void* cut(Arena& arena, size_t size);
  void* from_cache(size_t size);
  void* from_source(size_t size);
  void give_back(void* block, size_t size, bool keep);
  void release_cache();

  MemorySource& source_;
  const bool keep_;
  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> cache_;
  std::vector<Arena> arenas_;
  AllocatorStats stats_;
};

MemorySource& system_memory();
CachingAllocator& cpu_allocator();
// The allocator of the chosen GPU. Blocks belong to the order of one stream: memory that another
// stream uses is kept until an event says that it is done. LOCKSTEP_NO_CUDA_CACHE=1 keeps no block,
// so that memory checkers see the end of each. Errors: EnvironmentError in a build without CUDA.
CachingAllocator& cuda_allocator();

}  // namespace lockstep
