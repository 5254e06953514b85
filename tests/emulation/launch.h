// The function to which core/cuda/launch.h passes an emulated kernel; it adds the kernel to the
// fake runtime's queue.
#pragma once

#include <driver_types.h>

#include "tests/emulation/engine.h"

namespace lockstep::emulation {

// Like cudaLaunchKernel: checks the shape against the device's limits and queues the call.
cudaError_t enqueue_launch(
    Call call, dim3 grid, dim3 block, size_t dynamic_shared_bytes, cudaStream_t stream);

}  // namespace lockstep::emulation
