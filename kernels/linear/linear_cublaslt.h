// linear by cuBLASLt: the bodies that run on CUDA streams. Contracts: kernels/linear/linear.h.
#pragma once

#include <string>

#include "kernels/linear/linear.h"

namespace lockstep::kernels::cublaslt {

// True when cuBLASLt can be called: false in builds without it, and under emulation unless the
// emulated machine has one.
bool is_available();
// The version, as "13.1.0". Errors: EnvironmentError when it cannot be loaded. Requires:
// is_available().
std::string version();

LinearForward linear_forward;
LinearBackwardData linear_backward_data;
LinearBackwardWeight linear_backward_weight;

}  // namespace lockstep::kernels::cublaslt
