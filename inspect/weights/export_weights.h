// Exports weights of a checkpoint for other programs, as a file of PyTorch or a safetensors file.
#pragma once

#include <filesystem>
#include <string>

#include "core/safetensors.h"

namespace lockstep::trainers {

// Writes the weights of the file `from`, which read_weights() must be able to read, to `to`. The
// extension of `to` selects the format: .pt, .pth or .tar for torch.load, or .safetensors. The
// names are PyTorch's, as without_wrappers() leaves them, with `prefix` before each. The
// export includes what the run recorded for evaluation, and the loss scaler's state where there is
// one. Returns lines for the user. Errors: UsageError for another extension or a prefix that gives
// no valid tensor name; CheckpointError for a file that cannot be read or holds an optimizer's
// state; EnvironmentError.
std::string export_weights(const std::filesystem::path& from,
                           const std::filesystem::path& to,
                           const std::string& prefix);

// Reads a safetensors file or one of torch.save (data/torch_file/torch_file.h), told apart by
// its content. A run directory stands for its newest checkpoint. Errors: CheckpointError for a file
// that cannot be read.
Safetensors read_weights(const std::filesystem::path& path);

}  // namespace lockstep::trainers
