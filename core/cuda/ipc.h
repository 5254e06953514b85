// Device memory and events shared with other processes of this host, by CUDA's interprocess
// communication (IPC). Without CUDA: see core/cuda/device.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct CUstream_st;
struct CUevent_st;

namespace lockstep::cuda {

// Tells whether kernels of this process can access memory of the device with that UUID: its own
// device, or a visible one that is a peer. Errors: CudaError.
bool can_reach(const std::string& uuid);

// An opaque value, sent to other processes unchanged.
using Handle = std::array<std::byte, 64>;

// CUDA's handle denotes a whole allocation, hence the offset.
struct MemoryHandle {
  Handle allocation{};
  uint64_t offset = 0;
};

// Exports memory on this process's device, which others may map until it is freed. Errors:
// CudaError; EnvironmentError without a driver.
MemoryHandle export_memory(const std::byte* at);
// Maps another process's memory into this one. It stays mapped while a copy of the pointer lives;
// all copies must be gone before that process frees the memory. Errors: CudaError.
std::shared_ptr<std::byte> import_memory(const MemoryHandle& handle);

// An event that one process records and others wait for: work queued in their streams after the
// wait runs when the recorded work is done. A wait refers to the latest record() at the time of the
// call; before the first one it does nothing. The recording process must destroy its event last.
// Errors of all functions: CudaError.
class InterprocessEvent {
 public:
  InterprocessEvent();                               // Errors: also as Event's
  explicit InterprocessEvent(const Handle& theirs);  // another process's; must not be recorded here

  Handle handle() const;
  void record(CUstream_st* stream);
  void make_wait(CUstream_st* stream) const;
  bool done() const;

 private:
  std::shared_ptr<CUevent_st> event_;
};

}  // namespace lockstep::cuda
