// CUDA streams and events as the core needs them. No toolkit header here: a build without CUDA has
// the same functions (core/cuda_absent.cpp), which refuse.
#pragma once

#include <cstddef>
#include <memory>

struct CUstream_st;
struct CUevent_st;

namespace lockstep::cuda {

// A stream of its own order, beside the legacy default stream, which is never used.
// Errors: EnvironmentError as select_device's when no device was chosen yet.
std::shared_ptr<CUstream_st> make_stream();
// Errors: CudaError.
void synchronize(CUstream_st* stream);

// Copies bytes between any two of device, pinned and ordinary memory, in the stream's order.
// Ordinary memory: `from` may be changed at once, `to` holds the bytes on return.
// Errors: CudaError.
void copy_bytes(CUstream_st* stream, void* to, const void* from, size_t bytes);

// A point in a stream's order. Thread safety: one caller at a time.
class Event {
 public:
  Event();

  void record(CUstream_st* stream);
  // What `stream` is given from now on waits for the last record().
  void make_wait(CUstream_st* stream) const;
  bool done() const;
  void synchronize() const;

 private:
  std::shared_ptr<CUevent_st> event_;
};

}  // namespace lockstep::cuda
