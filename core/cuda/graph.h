// A stream's work recorded once and given again in one call. No toolkit header here: a build
// without CUDA has the same functions (core/cuda_absent.cpp), which refuse.
#pragma once

#include <memory>

#include "core/function_ref.h"

struct CUstream_st;
struct CUgraphExec_st;

namespace lockstep::cuda {

// Addresses are recorded with the work: what it reads and writes must stay where it is, see
// core/cuda/memory.h.
class Graph {
 public:
  Graph() = default;  // empty

  // Records what `body` gives to the stream, and runs none of it. Errors: what `body` throws;
  // CudaError for what cannot be recorded: waiting for the device.
  static Graph record(CUstream_st* stream, FunctionRef<void()> body);

  explicit operator bool() const { return executable_ != nullptr; }
  // Requires: not empty. Errors: CudaError.
  void launch(CUstream_st* stream) const;

 private:
  std::shared_ptr<CUgraphExec_st> executable_;
};

// True while the calling thread is inside record().
bool records_here();
// True while work that the stream is given is recorded: it, or a stream that it waits for, is
// inside record().
bool is_recording(CUstream_st* stream);

}  // namespace lockstep::cuda
