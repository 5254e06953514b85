// The API's functions that copy and set memory.
#include <cstring>

#include "tests/emulation/access_check.h"
#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

bool fits(cudaMemcpyKind kind, bool from_device, bool to_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !from_device && !to_device;
    case cudaMemcpyHostToDevice:
      return !from_device && to_device;
    case cudaMemcpyDeviceToHost:
      return from_device && !to_device;
    case cudaMemcpyDeviceToDevice:
      return from_device && to_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

void wait_for(CUstream_st& stream) {
  ++runtime_counters.synchronizations;
  state().queues.finish(stream);
}

// Pageable memory is read during the call, into a staging buffer, and written before the call
// returns. Pinned memory is read and written when the stream reaches the copy.
cudaError_t copy(
    CUstream_st& stream, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const auto source = state().heap.place_of(from, bytes);
  const auto target = state().heap.place_of(to, bytes);
  if (!source || !target) return cudaErrorInvalidValue;
  const bool from_device = source == Place::kDevice;
  const bool to_device = target == Place::kDevice;
  if (!fits(kind, from_device, to_device)) return cudaErrorInvalidValue;
  if (bytes == 0) return cudaSuccess;

  const bool queued = !stream.capture;
  std::shared_ptr<std::byte[]> staged;
  if (source == Place::kPageable && queued) {
    staged = std::make_shared<std::byte[]>(bytes);
    std::memcpy(staged.get(), from, bytes);
  }
  const bool watched = target != Place::kPageable;
  const cudaError_t status = submit(stream, [=] {
    std::memcpy(to, staged ? staged.get() : from, bytes);
    if (watched) note_written(to, bytes);
  });
  if (status != cudaSuccess || !queued) return status;
  ++runtime_counters.copies;
  runtime_counters.copied_bytes += static_cast<int64_t>(bytes);
  if (target == Place::kPageable || (!from_device && !to_device)) wait_for(stream);
  return cudaSuccess;
}

cudaError_t fill(CUstream_st& stream, void* to, int value, size_t bytes) {
  const auto target = state().heap.place_of(to, bytes);
  if (!target || target == Place::kPageable) return cudaErrorInvalidValue;
  if (bytes == 0) return cudaSuccess;
  if (!stream.capture) ++runtime_counters.memsets;
  return submit(stream, [=] {
    std::memset(to, value, bytes);
    note_written(to, bytes);
  });
}

CUstream_st& default_stream() {
  return *state().queues.find(nullptr);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return api([&] {
    CUstream_st* const stream = state().queues.find(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle
                             : copy(*stream, to, from, bytes, kind);
  });
}
// See "API synchronization behavior" in NVIDIA's manual. A copy from pageable memory to the device
// waits for the stream and returns once the bytes are staged; a copy within the device does not
// wait at all. All other copies return when they are done.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return api([&] {
    if (const cudaError_t status = refuse_default_stream(); status != cudaSuccess) return status;
    const bool to_device = state().heap.place_of(to, bytes) == Place::kDevice;
    const bool from_pinned = state().heap.place_of(from, bytes) == Place::kPinned;
    const bool staged = to_device && state().heap.place_of(from, bytes) == Place::kPageable;
    if (staged) wait_for(default_stream());
    const cudaError_t status = copy(default_stream(), to, from, bytes, kind);
    if (status == cudaSuccess && (!to_device || from_pinned)) wait_for(default_stream());
    return status;
  });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t handle) {
  return api([&] {
    CUstream_st* const stream = state().queues.find(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : fill(*stream, to, value, bytes);
  });
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return api([&] {
    const cudaError_t status = refuse_default_stream();
    return status == cudaSuccess ? fill(default_stream(), to, value, bytes) : status;
  });
}

}  // extern "C"
