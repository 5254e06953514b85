// Weights in PyTorch's own files (.pt, .pth, .pth.tar), read and written without running code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/safetensors.h"

namespace lockstep::trainers {

// Whether the file's first bytes are those of torch.save, of any version, or of another pickle.
// False for a file that cannot be read.
bool is_torch_file(const std::filesystem::path& path);

// Reads the state_dict that a file of torch.save is, or that a dict in it has as "state_dict",
// "model" or "model_state_dict": its tensors in row-major order, strided ones gathered, and the
// metadata that write_torch_file() left. Types: f32, f16, bf16, u8, i32, i64.
// Errors: CheckpointError, with the way to a file that can be read, for files of PyTorch before 1.6
// (a bare pickle, a tar archive), pickled modules and all else that is no such dict, TorchScript,
// other types, damaged and hostile files; EnvironmentError.
Safetensors read_torch_file(const std::filesystem::path& path);

// torch.amp.GradScaler's state_dict(), in its order.
using ScalerState = std::vector<std::pair<std::string, std::variant<int64_t, double>>>;

// Writes what torch.load(path, weights_only=True) gives back as a dict of these tensors, or where
// there is a scaler's state as {"model": dict of these tensors, "scaler": dict}. The metadata lie
// beside it, where PyTorch does not look. Atomic. Errors: EnvironmentError.
void write_torch_file(const std::filesystem::path& path,
                      const Safetensors& content,
                      const std::optional<ScalerState>& scaler = {});

}  // namespace lockstep::trainers
