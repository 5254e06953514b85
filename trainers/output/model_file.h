// A model's state as a file that PyTorch and timm load by name, and its digest.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/safetensors.h"
#include "nn/module.h"

namespace lockstep::trainers {

// Copies of every parameter and buffer in PyTorch's shapes and row-major order.
std::map<std::string, Tensor> file_tensors(const nn::Module& model);

// XXH3 over them in name order, 16 hex digits: equal exactly when all bits are.
uint64_t state_digest(const nn::Module& model);

// Atomic; `metadata` joins {"format": "pt"}. Errors: EnvironmentError.
void save_model(const std::filesystem::path& path,
                const nn::Module& model,
                std::map<std::string, std::string> metadata);

}  // namespace lockstep::trainers
