// Allocates parts of one range of memory.
#pragma once

#include <cstddef>
#include <map>

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

}  // namespace lockstep
