// CUDA streams and events as the core needs them. Without CUDA: see core/cuda/device.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct CUstream_st;
struct CUevent_st;

#pragma GCC visibility push(default)
namespace lockstep::cuda {

// Thread blocks of a stream with high priority start before waiting blocks of other streams. The
// gradient exchange uses it to overlap with the kernels of the backward pass.
enum class Priority : uint8_t { kNormal, kHigh };

// Creates a stream that is independent of the legacy default stream, which is never used.
// Destroying it waits for what was queued. Errors: EnvironmentError as select_device's when no
// device was chosen yet.
std::shared_ptr<CUstream_st> make_stream(Priority priority = Priority::kNormal);
// Errors: CudaError.
void synchronize(CUstream_st* stream);

// Copies bytes between any two of device, pinned and ordinary memory, in the stream's order.
// With ordinary memory, `from` may be changed and `to` holds the bytes on return.
// Errors: CudaError.
void copy_bytes(CUstream_st* stream, void* to, const void* from, size_t bytes);

// A point in a stream's order. An event that was never recorded is done. Thread safety: one caller
// at a time. Errors of all functions: CudaError.
class Event {
 public:
  Event();  // Errors: also as make_stream's

  void record(CUstream_st* stream);
  // Makes later work of `stream` wait for the last record().
  void make_wait(CUstream_st* stream) const;
  bool done() const;
  void synchronize() const;

 private:
  std::shared_ptr<CUevent_st> event_;
};

}  // namespace lockstep::cuda
#pragma GCC visibility pop
