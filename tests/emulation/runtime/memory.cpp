// The API's functions for memory.
#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

struct Use {
  size_t held, total;
};

Use use_of(Place place, int device) {
  const FakeMachine& machine = state().machine;
  if (place == Place::kPinned) return {state().heap.pinned_bytes(), machine.pinned_bytes};
  return {state().heap.device_bytes(device),
          machine.devices[static_cast<size_t>(device)].memory_bytes};
}

cudaError_t allocate(void** memory, size_t bytes, Place place) {
  *memory = nullptr;
  if (const cudaError_t status = refuse_while_capturing(); status != cudaSuccess) return status;
  if (bytes == 0) return cudaSuccess;
  const int device = this_thread().device;
  const auto [held, total] = use_of(place, device);
  const size_t taken = place == Place::kDevice ? Heap::taken_bytes(bytes) : bytes;
  if (held > total || taken > total - held) return cudaErrorMemoryAllocation;
  *memory = state().heap.allocate(bytes, place, device);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  ++(place == Place::kDevice ? runtime_counters.allocations : runtime_counters.pinned_allocations);
  return cudaSuccess;
}

// Like the real runtime, waits for all work that might use the memory.
cudaError_t free_when_idle(void* memory, Place place) {
  if (memory == nullptr) return cudaSuccess;
  if (const cudaError_t status = refuse_while_capturing(); status != cudaSuccess) return status;
  ++runtime_counters.synchronizations;
  state().queues.finish_all();
  return state().heap.free(memory, place) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return api([&] { return allocate(memory, bytes, Place::kDevice); });
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return api([&] { return allocate(memory, bytes, Place::kPinned); });
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  return release([&] { return free_when_idle(memory, Place::kDevice); });
}
cudaError_t cudaFreeHost(void* memory) {
  return release([&] { return free_when_idle(memory, Place::kPinned); });
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return api([&] {
    const Use use = use_of(Place::kDevice, this_thread().device);
    *total = use.total;
    *free = use.total - std::min(use.total, use.held);
    return cudaSuccess;
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* at) {
  return api([&] {
    const Heap::Block* const block = state().heap.find(at);
    *attributes = {};
    attributes->device = block == nullptr ? -2 : block->device;  // cudaInvalidDeviceId
    if (block == nullptr) return cudaSuccess;
    const bool pinned = block->place == Place::kPinned;
    attributes->type = pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(at);
    attributes->hostPointer = pinned ? const_cast<void*>(at) : nullptr;
    return cudaSuccess;
  });
}

}  // extern "C"
