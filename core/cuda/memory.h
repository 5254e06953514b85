// Page-locked host memory, and pools of device memory for work that is recorded with its addresses.
#pragma once

#include <cstddef>
#include <memory>

#include "core/tensor.h"

namespace lockstep {

class CachingAllocator;

namespace cuda {

// An uninitialized tensor on the CPU in page-locked memory. Copies between it and the device are
// asynchronous, so it must not be accessed until they are done.
// Errors: EnvironmentError with the bytes wanted.
Tensor empty_pinned(const Shape& shape, Dtype dtype);

// Copies bytes between any two of device, pinned and ordinary memory, or zeroes bytes on the
// device. Both wait for all work of all streams first, and are complete on return. For rare use.
// Errors: CudaError.
void copy_when_idle(void* to, const void* from, size_t bytes);
void zero_when_idle(void* memory, size_t bytes);

// While a Use lives, the calling thread's new device tensors are allocated from the pool. Tensors
// of all sizes share the pool's pieces of memory. When the device runs out of memory, pieces that
// hold no tensor are freed. The pool's memory lives as long as the pool or one of its tensors.
class MemoryPool {
 public:
  static constexpr size_t kUnit = 512;  // tensor sizes are rounded up to it, as by cudaMalloc

  // `expected`: size of the first piece, which the first tensor allocates if the device has that
  // much.
  // Errors: EnvironmentError in a build without CUDA.
  explicit MemoryPool(size_t expected = 0);

  // Keeps the present pieces, since recorded work has addresses in them.
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

// The peak of the device memory that this process held, including caches.
size_t peak_bytes();

// The pool in use on this thread; null: none.
const std::shared_ptr<CachingAllocator>& pool_in_use();

}  // namespace cuda
}  // namespace lockstep
