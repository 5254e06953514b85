// Writing a .safetensors file where more is to be done with it than replace another.
#pragma once

#include "core/atomic_file.h"
#include "core/safetensors.h"

namespace lockstep {

// Appends all of the content to an empty file. Errors: EnvironmentError.
void append_safetensors(AtomicFile& file, const Safetensors& content);

}  // namespace lockstep
