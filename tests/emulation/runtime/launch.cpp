// Kernel launches: checks the device's limits, then adds the kernel to the stream's queue.
#include "tests/emulation/launch.h"

#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/limits.h"
#include "tests/emulation/runtime/state.h"

namespace lockstep::emulation {
namespace {

cudaError_t check_limits(const Call& call, dim3 grid, dim3 block, size_t dynamic_shared_bytes) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kThreadsPerBlock || block.z > kThreadsInZ)
    return cudaErrorInvalidConfiguration;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaErrorInvalidConfiguration;
  if (grid.x > kBlocksInX || grid.y > kBlocksInYOrZ || grid.z > kBlocksInYOrZ)
    return cudaErrorInvalidConfiguration;
  if (dynamic_shared_bytes > kDynamicSharedBytes) return cudaErrorInvalidValue;
  return call.argument_bytes > kArgumentBytes ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

cudaError_t enqueue_launch(
    Call call, dim3 grid, dim3 block, size_t dynamic_shared_bytes, cudaStream_t handle) {
  return api([&] {
    CUstream_st* const stream = state().queues.find(handle);
    if (stream == nullptr || stream->device != this_thread().device)
      return cudaErrorInvalidResourceHandle;
    if (const cudaError_t status = check_limits(call, grid, block, dynamic_shared_bytes);
        status != cudaSuccess)
      return status;
    if (!stream->capture) {
      ++runtime_counters.launches;
      ++runtime_counters.launches_of[call.op];
    }
    return submit(*stream, [=, call = std::move(call)] {
      run_grid(call, grid, block, dynamic_shared_bytes);
    });
  });
}

}  // namespace lockstep::emulation
