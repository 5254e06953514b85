// Writes the content of a .safetensors file into an AtomicFile that the caller manages.
#pragma once

#include "core/atomic_file.h"
#include "core/safetensors.h"

namespace lockstep {

// Appends the whole content, header included, to an empty file. Errors: EnvironmentError.
void append_safetensors(AtomicFile& file, const Safetensors& content);

}  // namespace lockstep
