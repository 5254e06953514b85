// Which line of a kernel a message is about. Slow: asks addr2line, for messages alone.
#pragma once

#include <string>

#include "tests/emulation/engine.h"

namespace lockstep::emulation {

// "pack.cuh:54, inlined into relu_cuda.cu:20" for a return address in emulated kernels; the device
// language's own lines are left out. Without debug information: the program's name and an offset.
std::string place_of(const void* return_address);
// The kernel's name with its template arguments; its launch's types where the symbol is gone.
std::string kernel_name(const Call& call);

}  // namespace lockstep::emulation
