// Waits of core/cuda during which a Watch looks for failures.
#pragma once

#include <driver_types.h>

#include "core/function_ref.h"

namespace lockstep::cuda {

// Asks until the answer is no longer cudaErrorNotReady, with the watch looking; returns at once
// where none lives. Errors: what the watch throws.
void wait_watched(FunctionRef<cudaError_t()> ask);

// Waits likewise for all of the watch's streams, before a wait for the whole device.
void wait_watched_streams();

// Call it before ending a stream or memory, which waits for the device.
void tell_watch_of_end() noexcept;

}  // namespace lockstep::cuda
