#include "core/cuda/ipc.h"

#include <cstring>

#include <cuda_runtime_api.h>

#include "core/cuda/device.h"
#include "core/cuda/error.h"
#include "core/cuda/library.h"

namespace lockstep::cuda {
namespace {

static_assert(sizeof(Handle) == sizeof(cudaIpcMemHandle_t));
static_assert(sizeof(Handle) == sizeof(cudaIpcEventHandle_t));

// The runtime has no such query. The types stand for cuda.h's CUresult and CUdeviceptr.
using AddressRange = int(unsigned long long* base, size_t* bytes, unsigned long long at);

uint64_t offset_in_allocation(const std::byte* at) {
  static const Library driver(
      "the CUDA driver", "libcuda.so.1", "let gradients travel through the host");
  static AddressRange* const address_range =
      driver.function<AddressRange>("cuMemGetAddressRange_v2");
  unsigned long long base = 0;
  size_t bytes = 0;
  const auto address = reinterpret_cast<uintptr_t>(at);
  if (address_range(&base, &bytes, address) != 0) {
    throw CudaError("export_memory", cudaErrorInvalidValue, "the driver does not know the memory");
  }
  return address - base;
}

std::shared_ptr<CUevent_st> owned(cudaEvent_t event) {
  return {event, [](cudaEvent_t ended) { cudaEventDestroy(ended); }};
}

}  // namespace

bool can_reach(const std::string& uuid) {
  const DeviceProperties& mine = device_properties();
  if (uuid == mine.uuid) return true;
  const int other = visible_device(uuid);
  if (other < 0) return false;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, mine.index, other), "device");
  return can != 0;
}

MemoryHandle export_memory(const std::byte* at) {
  MemoryHandle exported{.allocation = {}, .offset = offset_in_allocation(at)};
  cudaIpcMemHandle_t handle;
  check(cudaIpcGetMemHandle(&handle, const_cast<std::byte*>(at - exported.offset)),
        "export_memory");
  std::memcpy(exported.allocation.data(), &handle, sizeof(handle));
  return exported;
}

std::shared_ptr<std::byte> import_memory(const MemoryHandle& handle) {
  ensure_device();
  cudaIpcMemHandle_t theirs;
  std::memcpy(&theirs, handle.allocation.data(), sizeof(theirs));
  void* base = nullptr;  // CUDA counts how often an allocation was opened
  check(cudaIpcOpenMemHandle(&base, theirs, cudaIpcMemLazyEnablePeerAccess), "import_memory");
  const std::shared_ptr<void> mapping(base, [](void* ended) { cudaIpcCloseMemHandle(ended); });
  return {mapping, static_cast<std::byte*>(base) + handle.offset};
}

InterprocessEvent::InterprocessEvent() {
  ensure_device();
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess), "event");
  event_ = owned(event);
}

InterprocessEvent::InterprocessEvent(const Handle& theirs) {
  ensure_device();
  cudaIpcEventHandle_t handle;
  std::memcpy(&handle, theirs.data(), sizeof(handle));
  cudaEvent_t event = nullptr;
  check(cudaIpcOpenEventHandle(&event, handle), "import_event");
  event_ = owned(event);
}

Handle InterprocessEvent::handle() const {
  cudaIpcEventHandle_t handle;
  check(cudaIpcGetEventHandle(&handle, event_.get()), "export_event");
  Handle exported;
  std::memcpy(exported.data(), &handle, sizeof(handle));
  return exported;
}

void InterprocessEvent::record(CUstream_st* stream) {
  check(cudaEventRecord(event_.get(), stream), "event");
}

void InterprocessEvent::make_wait(CUstream_st* stream) const {
  check(cudaStreamWaitEvent(stream, event_.get(), 0), "event");
}

bool InterprocessEvent::done() const {
  return is_done(cudaEventQuery(event_.get()));
}

}  // namespace lockstep::cuda
