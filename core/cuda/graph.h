// CUDA graphs: a stream's work, recorded once and launched again in one call. Without CUDA: see
// core/cuda/device.h.
#pragma once

#include <memory>

#include "core/function_ref.h"

struct CUstream_st;
struct CUgraphExec_st;

namespace lockstep::cuda {

// The work is recorded with its addresses, so the memory that it reads and writes must stay
// allocated: see core/cuda/memory.h.
class Graph {
 public:
  Graph() = default;  // empty

  // Records the work that `body` queues on the stream, without running it. Errors: those of `body`;
  // CudaError for operations that cannot be recorded, such as waiting for the device.
  static Graph record(CUstream_st* stream, FunctionRef<void()> body);

  explicit operator bool() const { return executable_ != nullptr; }
  // Requires: not empty. Errors: CudaError.
  void launch(CUstream_st* stream) const;

 private:
  std::shared_ptr<CUgraphExec_st> executable_;
};

// True while the calling thread is inside record().
bool is_recording_here();
// True while work queued on the stream is recorded: the stream itself, or one that it waits for, is
// being recorded.
bool is_recording(CUstream_st* stream);

}  // namespace lockstep::cuda
