// Reads weights, from a file or from a run.
#pragma once

#include <filesystem>

#include "core/safetensors.h"

namespace lockstep::trainers {

// Reads a safetensors file or one of torch.save (data/torch_file/torch_file.h), told apart by
// its content. A run directory stands for its newest checkpoint. Errors: CheckpointError for a file
// that cannot be read.
Safetensors read_weights(const std::filesystem::path& path);

}  // namespace lockstep::trainers
