// Memory that the CPU and the device can both reach.
#pragma once

#include "core/tensor.h"

namespace lockstep::cuda {

// A tensor on the CPU in page-locked memory, uninitialised: copies between it and the device run
// beside the CPU, so that it must not be touched until they are done.
// Errors: EnvironmentError with the bytes wanted.
Tensor empty_pinned(const Shape& shape, Dtype dtype);

}  // namespace lockstep::cuda
