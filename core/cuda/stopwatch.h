// Times work on the device. No toolkit header here: a build without CUDA has the same functions
// (core/cuda_absent.cpp), which refuse.
#pragma once

#include <memory>

#include "core/function_ref.h"

struct CUevent_st;
struct CUstream_st;

namespace lockstep::cuda {

// A place in a stream's order that knows when it was passed. Errors of all functions: CudaError.
class Mark {
 public:
  Mark();  // Errors: also EnvironmentError as select_device's when no device was chosen yet

  void record(CUstream_st* stream);
  // Requires: both were recorded and passed.
  double microseconds_since(const Mark& earlier) const;

 private:
  std::shared_ptr<CUevent_st> event_;
};

// The median over some repetitions of what `queue` gives the stream, which is recorded once: the
// host's part is not in it, as it is not in a step that is a graph. `queue` is called twice, first
// without recording, so that libraries load what they need. Waits for the stream.
// Errors: what `queue` throws; CudaError.
double median_microseconds(CUstream_st* stream, FunctionRef<void()> queue);

}  // namespace lockstep::cuda
