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

namespace lockstep::data {

// Whether the file begins like one of torch.save, of any version, or like another pickle. False for
// a file that cannot be read.
bool is_torch_file(const std::filesystem::path& path);

// Reads the state_dict in a file of torch.save: the file itself, or the entry "state_dict", "model"
// or "model_state_dict" of a dict. Returns its tensors in row-major order, strided ones gathered,
// and the metadata that write_torch_file() wrote. Types: f32, f16, bf16, u8, i32, i64.
// Errors: CheckpointError, with the way to a readable file, for files of PyTorch before 1.6 (a bare
// pickle, a tar archive), pickled modules and other content that is no such dict, TorchScript,
// other types, and damaged or hostile files; EnvironmentError.
Safetensors read_torch_file(const std::filesystem::path& path);

// torch.amp.GradScaler's state_dict(), in its order.
using ScalerState = std::vector<std::pair<std::string, std::variant<int64_t, double>>>;

// Writes a file that torch.load(path, weights_only=True) reads as a dict of these tensors or, with
// a scaler's state, as {"model": dict of these tensors, "scaler": dict}. The metadata lie beside
// it, where PyTorch does not look. Atomic. Errors: EnvironmentError.
void write_torch_file(const std::filesystem::path& path,
                      const Safetensors& content,
                      const std::optional<ScalerState>& scaler = {});

}  // namespace lockstep::data
