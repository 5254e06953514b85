// CUDA streams and events as the core needs them. No toolkit header here: a build without CUDA has
// the same functions (core/cuda_absent.cpp), which refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct CUstream_st;
struct CUevent_st;

#pragma GCC visibility push(default)
namespace lockstep::cuda {

// Blocks of a high stream go before waiting blocks of others: what exchanges gradients beside
// the kernels of the backward pass.
enum class Priority : uint8_t { kNormal, kHigh };

// A stream of its own order, beside the legacy default stream, which is never used. Its end waits
// for what was queued. Errors: EnvironmentError as select_device's when no device was chosen yet.
std::shared_ptr<CUstream_st> make_stream(Priority priority = Priority::kNormal);
// Errors: CudaError.
void synchronize(CUstream_st* stream);

// Copies bytes between any two of device, pinned and ordinary memory, in the stream's order.
// Ordinary memory: `from` may be changed at once, `to` holds the bytes on return.
// Errors: CudaError.
void copy_bytes(CUstream_st* stream, void* to, const void* from, size_t bytes);

// A point in a stream's order; done, as long as it was never recorded. Thread safety: one caller at
// a time. Errors of all functions: CudaError.
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
