// Weights of a checkpoint for other programs: a file of PyTorch, or a safetensors file.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::trainers {

// Writes the weights of the file `from`, whatever read_weights() reads, to `to`, whose ending
// chooses the form: .pt, .pth or .tar for torch.load, or .safetensors. The names are PyTorch's;
// "module." before all of them is dropped, and `prefix` put there. What the run recorded for
// evaluation goes along, and the loss scaler's state where there is one. Returns lines for the
// user. Errors: UsageError for another ending or a prefix that makes no tensor's name;
// CheckpointError for a file that cannot be read or holds an optimizer's state; EnvironmentError.
std::string export_weights(const std::filesystem::path& from,
                           const std::filesystem::path& to,
                           const std::string& prefix);

}  // namespace lockstep::trainers
