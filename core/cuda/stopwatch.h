// Times work on the device. Without CUDA: see core/cuda/device.h.
#pragma once

#include <memory>

#include "core/function_ref.h"

struct CUevent_st;
struct CUstream_st;

namespace lockstep::cuda {

// A point in a stream's order, with the time when the stream reached it. Errors of all functions:
// CudaError.
class Mark {
 public:
  Mark();  // Errors: also EnvironmentError as select_device's when no device was chosen yet

  void record(CUstream_st* stream);
  // Requires: the stream has reached both.
  double microseconds_since(const Mark& earlier) const;

 private:
  std::shared_ptr<CUevent_st> event_;
};

// The median time of several repetitions of the work that `queue` puts on the stream. The work is
// recorded as a graph, so the host's time to queue it does not count, as in a training step that is
// a graph. `queue` is called twice, first without recording, so that libraries load what they need.
// Waits for the stream.
// Errors: what `queue` throws; CudaError.
double median_microseconds(CUstream_st* stream, FunctionRef<void()> queue);

}  // namespace lockstep::cuda
