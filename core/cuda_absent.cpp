// What core/cuda gives, in a build without CUDA.
#include "core/allocator.h"
#include "core/cuda/stream.h"
#include "core/error.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError("this build has no CUDA",
                         "no CUDA toolkit was found when it was configured, or LOCKSTEP_CUDA=OFF",
                         "cmake --preset release -DLOCKSTEP_CUDA=ON, or --device cpu");
}

}  // namespace

CachingAllocator& cuda_allocator() {
  refuse();
}

namespace cuda {

std::shared_ptr<CUstream_st> make_stream() {
  refuse();
}
void synchronize(CUstream_st*) {
  refuse();
}
void copy_bytes(CUstream_st*, void*, const void*, size_t) {
  refuse();
}

}  // namespace cuda
}  // namespace lockstep
