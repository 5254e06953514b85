// Memory that the CPU and the device can both reach.
#pragma once

#include <cstddef>

#include "core/tensor.h"

namespace lockstep::cuda {

// A tensor on the CPU in page-locked memory, uninitialized: copies between it and the device run
// beside the CPU, so that it must not be touched until they are done.
// Errors: EnvironmentError with the bytes wanted.
Tensor empty_pinned(const Shape& shape, Dtype dtype);

// Bytes copied between any two of device, pinned and ordinary memory, or made zero on the device,
// when all that any stream was given is done; there on return. For what happens rarely.
// Errors: CudaError.
void copy_when_idle(void* to, const void* from, size_t bytes);
void zero_when_idle(void* memory, size_t bytes);

}  // namespace lockstep::cuda
