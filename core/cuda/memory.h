// Memory that the CPU and the device can both reach, and device memory of its own for work that is
// recorded with its addresses.
#pragma once

#include <cstddef>
#include <memory>

#include "core/tensor.h"

namespace lockstep {

class CachingAllocator;

namespace cuda {

// A tensor on the CPU in page-locked memory, uninitialized: copies between it and the device run
// beside the CPU, so that it must not be touched until they are done.
// Errors: EnvironmentError with the bytes wanted.
Tensor empty_pinned(const Shape& shape, Dtype dtype);

// Bytes copied between any two of device, pinned and ordinary memory, or made zero on the device,
// when all that any stream was given is done; there on return. For what happens rarely.
// Errors: CudaError.
void copy_when_idle(void* to, const void* from, size_t bytes);
void zero_when_idle(void* memory, size_t bytes);

// While a Use lives, the calling thread's new tensors on the device come from the pool, and go back
// there. Tensors of all sizes share its pieces of memory, which are the device's again when it runs
// short and a piece holds none. The pool's memory lives as long as it or one of its tensors.
class MemoryPool {
 public:
  static constexpr size_t kUnit = 512;  // of its tensors' sizes, as cudaMalloc's

  // `expected`: bytes that the first tensor takes from the device at once, if they are there.
  // Errors: EnvironmentError in a build without CUDA.
  explicit MemoryPool(size_t expected = 0);

  // Recorded work has addresses in the pool: the pieces that there are by now stay.
  void hold();
  size_t bytes_in_use() const;

  class Use {
   public:
    explicit Use(const MemoryPool& pool) : Use(&pool) {}
    explicit Use(const MemoryPool* pool);  // null: changes nothing
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    bool changes_;
  };

 private:
  std::shared_ptr<CachingAllocator> allocator_;
};

// The most memory of the device that this process has held so far, that of caches included.
size_t peak_bytes();

// The pool in use on this thread; null: none.
const std::shared_ptr<CachingAllocator>& pool_in_use();

}  // namespace cuda
}  // namespace lockstep
