// Times work on the device. No toolkit header here: a build without CUDA has the same function
// (core/cuda_absent.cpp), which refuses.
#pragma once

#include "core/function_ref.h"

struct CUstream_st;

namespace lockstep::cuda {

// The median over some repetitions of what `queue` gives the stream, which is recorded once: the
// host's part is not in it, as it is not in a step that is a graph. `queue` is called twice, first
// without recording, so that libraries load what they need. Waits for the stream.
// Errors: what `queue` throws; CudaError.
double median_microseconds(CUstream_st* stream, FunctionRef<void()> queue);

}  // namespace lockstep::cuda
