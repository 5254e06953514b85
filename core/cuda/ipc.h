// Device memory and events that other processes of this host reach: CUDA's interprocess
// communication. No toolkit header here; a build without CUDA has the same functions
// (core/cuda_absent.cpp), which refuse.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct CUstream_st;
struct CUevent_st;

namespace lockstep::cuda {

// Whether kernels of this process may touch memory of the device of that UUID: its own, or one that
// it sees and that is a peer. Errors: CudaError.
bool can_reach(const std::string& uuid);

// Sent to other processes as it is.
using Handle = std::array<std::byte, 64>;

// CUDA's handle means a whole allocation, hence the offset.
struct MemoryHandle {
  Handle allocation{};
  uint64_t offset = 0;
};

// Exports memory on this process's device, which others may map until it is freed. Errors:
// CudaError; EnvironmentError without a driver.
MemoryHandle export_memory(const std::byte* at);
// Another process's memory where this one sees it, as long as a copy lives; all must have ended
// before that process frees it. Errors: CudaError where CUDA refuses.
std::shared_ptr<std::byte> import_memory(const MemoryHandle& handle);

// An event that is recorded by one process and waited for by others: what stands in their streams
// behind the wait runs when the recorded one has passed. A wait is for what was recorded at the
// time of the call, and before the first record for nothing. Ends in its own process last.
// Errors of all functions: CudaError.
class InterprocessEvent {
 public:
  InterprocessEvent();                               // Errors: also as Event's
  explicit InterprocessEvent(const Handle& theirs);  // another process's, not recorded here

  Handle handle() const;
  void record(CUstream_st* stream);
  void make_wait(CUstream_st* stream) const;
  bool done() const;

 private:
  std::shared_ptr<CUevent_st> event_;
};

}  // namespace lockstep::cuda
