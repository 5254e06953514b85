// The API's functions for memory and events of other processes, and the one driver function that
// Lockstep calls. LOCKSTEP_EMULATION_IPC plants a fault. no-peers: devices have no peer access.
// refused: handles cannot be opened, as between separate containers. elsewhere: handles refer to
// the wrong part of an allocation.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <unistd.h>

#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/libraries.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

std::string_view planted() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_IPC");
  return text == nullptr ? "" : text;
}

template <class CudaHandle>
PagesHandle opened(const CudaHandle& handle) {
  PagesHandle pages;
  static_assert(sizeof(pages) <= sizeof(handle));
  std::memcpy(&pages, &handle, sizeof(pages));
  return pages;
}

// The error if this process cannot open the handle.
cudaError_t refusal_of(const PagesHandle& pages) {
  if (pages.process == getpid()) return cudaErrorDeviceUninitialized;
  return planted() == "refused" ? cudaErrorMapBufferObjectFailed : cudaSuccess;
}

bool are_peers(int one, int other) {
  return one != other && planted() != "no-peers";
}

// Returns 0, or 1: CUDA_ERROR_INVALID_VALUE.
int address_range(unsigned long long* base, size_t* bytes, unsigned long long at) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().heap.range_of(reinterpret_cast<const void*>(at));
  if (found.empty()) return 1;
  *base = reinterpret_cast<uintptr_t>(found.data());
  *bytes = found.size();
  return 0;
}

void* symbol(const char* name) {
  return std::string_view(name) == "cuMemGetAddressRange_v2"
             ? reinterpret_cast<void*>(address_range)
             : nullptr;
}

constexpr FakeLibrary kDriver = {symbol};

}  // namespace

namespace lockstep::emulation {

const FakeLibrary* fake_driver() {
  return &kDriver;
}

}  // namespace lockstep::emulation

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return api([&] {
    const auto devices = static_cast<int>(state().machine.devices.size());
    if (device < 0 || device >= devices || peer < 0 || peer >= devices)
      return cudaErrorInvalidDevice;
    *can = are_peers(device, peer) ? 1 : 0;
    return cudaSuccess;
  });
}
// Like the real function: any address in an allocation gives the handle of the whole allocation.
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  return api([&] {
    const std::optional<PagesHandle> pages = state().heap.share(memory);
    if (!pages) return cudaErrorInvalidValue;
    *handle = {};
    std::memcpy(handle, &*pages, sizeof(*pages));
    return cudaSuccess;
  });
}
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags) {
  return api([&] {
    if (flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    const PagesHandle pages = opened(handle);
    if (const cudaError_t status = refusal_of(pages); status != cudaSuccess) return status;
    const int device = this_thread().device;
    if (pages.device != device && !are_peers(pages.device, device))
      return cudaErrorPeerAccessUnsupported;
    *memory = state().heap.import(pages);
    if (*memory == nullptr) return cudaErrorInvalidResourceHandle;
    if (planted() == "elsewhere") *memory = static_cast<std::byte*>(*memory) + 256;
    return cudaSuccess;
  });
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  return release([&] {
    ++runtime_counters.synchronizations;
    state().queues.finish_all();
    return state().heap.close(memory) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return api([&] {
    if (!state().events.holds(event) || !event->shared || event->imported)
      return cudaErrorInvalidResourceHandle;
    const PagesHandle& pages = event->shared->handle();
    *handle = {};
    std::memcpy(handle, &pages, sizeof(pages));
    start_serving_thread();
    return cudaSuccess;
  });
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return api([&] {
    const PagesHandle pages = opened(handle);
    if (const cudaError_t status = refusal_of(pages); status != cudaSuccess) return status;
    auto shared = SharedEvent::open(pages);
    if (!shared) return cudaErrorInvalidResourceHandle;
    *event = state().events.add(
        {.device = pages.device, .timed = false, .shared = std::move(shared), .imported = true});
    return cudaSuccess;
  });
}

}  // extern "C"
