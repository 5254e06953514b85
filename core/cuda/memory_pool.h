// Device memory of its own for work that is recorded with its addresses.
#pragma once

#include <memory>

namespace lockstep {

class CachingAllocator;

namespace cuda {

// While a Use lives, the calling thread's new tensors on the device come from the pool, and go back
// there. The pool's memory lives as long as it or one of its tensors.
class MemoryPool {
 public:
  MemoryPool();  // Errors: EnvironmentError in a build without CUDA

  class Use {
   public:
    explicit Use(const MemoryPool& pool);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
  };

 private:
  std::shared_ptr<CachingAllocator> allocator_;
};

// The pool in use on this thread; null: none.
const std::shared_ptr<CachingAllocator>& pool_in_use();

}  // namespace cuda
}  // namespace lockstep
