// Finds the line of a kernel that a message refers to. Slow, since it runs addr2line; only for
// messages.
#pragma once

#include <string>

#include "tests/emulation/engine.h"

namespace lockstep::emulation {

// "pack.cuh:54, inlined into relu_cuda.cu:20" for a return address in emulated kernels; lines of
// device_language.h are omitted. Without debug information: the program's name and an offset.
std::string place_of(const void* return_address);
// The kernel's name with its template arguments; if the symbol is missing, the launch's types.
std::string kernel_name(const Call& call);

}  // namespace lockstep::emulation
