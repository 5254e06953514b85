// The caching allocator: memory given back is kept for the next request of its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// One range of memory, divided into parts. allocate() takes the best fit, the first of equal ones:
// tensors fill the holes that others of their size have left, and memory that is never needed is
// never touched. free() merges free neighbors. Thread safety: none.
class Arena {
 public:
  // Does not own the memory. Part sizes are multiples of `unit` bytes; parts are aligned as `begin`
  // is, to at most `unit` bytes.
  Arena(std::byte* begin, size_t bytes, size_t unit = 4096);

  // Null when no free part is large enough.
  void* allocate(size_t bytes);
  void free(void* part);
  bool holds(const void* part) const;
  bool is_free() const { return parts_.size() == 1 && parts_.begin()->second.free; }

  std::byte* begin() const { return begin_; }
  // Bytes from begin() to the end of the highest part that was ever allocated.
  size_t touched_bytes() const { return touched_; }

 private:
  struct Part {
    size_t bytes;
    bool free;
  };
  std::byte* begin_;
  size_t bytes_;
  size_t unit_;
  size_t touched_ = 0;
  std::map<size_t, Part> parts_;  // by offset; without gaps
};

// Records allocations and frees, to compute how large an arena must be to hold them all. Thread
// safety: none.
class ArenaRecord {
 public:
  explicit ArenaRecord(size_t unit) : unit_(unit) {}

  // Returns the allocation's number, for free().
  size_t allocate(size_t bytes);
  void free(size_t number);

  // Each allocation is rounded up to whole units.
  size_t bytes_in_use() const { return bytes_in_use_; }
  size_t peak_bytes_in_use() const { return peak_; }
  // The size of an arena that all allocations fit in: the peak, and what holes between parts cost,
  // in steps of a 64th of the peak.
  size_t arena_bytes() const;

 private:
  struct Event {
    size_t number;
    size_t bytes;  // 0: allocation `number` is freed
  };
  bool fit(size_t arena_bytes) const;

  size_t unit_;
  std::vector<size_t> sizes_;  // by the allocation's number
  std::vector<Event> events_;
  size_t bytes_in_use_ = 0, peak_ = 0;
};

struct AllocatorStats {
  // Requests that took memory for the first time. Constant after the first training steps.
  int64_t system_allocations = 0;
  size_t bytes_in_use = 0;
  size_t peak_bytes_in_use = 0;
  size_t bytes_cached = 0;
};

class CachingAllocator;

// The source of caching allocators' blocks.
class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  // 64-byte aligned; null when memory has run out.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* block) = 0;
  // Size of an arena, from which large blocks are cut; 0: each block is allocated by itself.
  virtual size_t arena_bytes() const { return 0; }
  // The first line of the error: "out of memory", and what is known about the memory's state.
  virtual std::string out_of_memory_text() const = 0;
  // False while free() must not be called.
  virtual bool can_free() const { return true; }

 private:
  friend class CachingAllocator;
  std::mutex users_mutex_;  // locked before the users' own mutexes
  std::vector<CachingAllocator*> users_;
};

// Blocks are 64-byte aligned. Small ones have sizes rounded to steps of an eighth of a power of
// two, so that at most 1/8 is lost and a step finds the blocks of the last step. Larger blocks are
// cut out of arenas, if the source has any, so that different sizes share memory in turn. Where all
// blocks are cut out of arenas, sizes are rounded only to the arena's unit.
// When the source runs out, all allocators on it release their free blocks; if that is not enough,
// new arenas are made smaller. Thread safety: all functions may be called from any thread.
class CachingAllocator {
 public:
  static constexpr size_t kLargeBlock = size_t{1} << 20;

  struct Options {
    std::string_view holds = "tensors";       // in messages: "3.5 MiB of tensors"
    bool keep = true;                         // false: blocks go back to the source at once
    std::optional<size_t> arena_bytes = {};   // in place of the source's
    size_t smallest_in_arenas = kLargeBlock;  // smaller blocks are not cut out of arenas
    size_t arena_unit = 4096;
    size_t first_arena_bytes = 0;  // 0: the same as the others'
  };

  // Requires: `source` outlives this.
  explicit CachingAllocator(MemorySource& source) : CachingAllocator(source, Options{}) {}
  CachingAllocator(MemorySource& source, const Options& options);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;
  ~CachingAllocator();

  // Errors: EnvironmentError when the source runs out, with the bytes wanted and how many each
  // allocator holds.
  void* allocate(size_t bytes);
  void free(void* block, size_t bytes);
  AllocatorStats stats() const;
  // Keeps the present arenas until this object ends, because recorded work uses their addresses.
  void hold_arenas();

  static size_t rounded(size_t bytes);

 private:
  size_t block_size(size_t bytes) const;
  size_t arena_bytes() const;  // 0: nothing is cut out of arenas
  // kSmaller: a new arena may be smaller than usual, after all allocators have released their
  // caches.
  enum class Arenas : uint8_t { kUsual, kSmaller };
  // These return null when they have no such block.
  void* obtain(size_t size, Arenas arenas);
  void* from_arenas(size_t size, Arenas arenas);
  void* cut(Arena& arena, size_t size);
  void* from_cache(size_t size);
  void reserve_places(size_t size);
  void release_cache();
  static void release_caches_of(MemorySource& source);
  static std::string usage_text(MemorySource& source);

  MemorySource& source_;
  const Options options_;
  mutable std::mutex mutex_;
  // free() must not allocate, since destructors call it: `free` has room for all blocks.
  struct Blocks {
    std::vector<void*> free;
    size_t count = 0;  // of all blocks of this size, in use or free
  };
  std::map<size_t, Blocks> cache_;
  std::vector<Arena> arenas_;
  size_t held_arenas_ = 0;  // arenas_[0..held_arenas_) are never given back
  AllocatorStats stats_;
};

MemorySource& system_memory();
CachingAllocator& cpu_allocator();
// The allocator of the chosen GPU. Blocks belong to the order of one stream: memory that another
// stream uses is kept until an event says that it is done. LOCKSTEP_NO_CUDA_CACHE=1 keeps no block,
// so that memory checkers see the end of each. Errors: EnvironmentError in a build without CUDA.
CachingAllocator& cuda_allocator();
// Allocators of streams' scratch memory. They cache nothing, since the same size is not requested
// again.
CachingAllocator& cpu_workspaces();
CachingAllocator& cuda_workspaces();

}  // namespace lockstep
