// Reading and writing .safetensors files, the format PyTorch, timm and Hugging Face load without
// running code.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep {

// Tensors here are row-major at any rank, as in the file: pass tensors of rank 4 through
// to_row_major() before writing and from_row_major() after reading.
struct Safetensors {
  std::map<std::string, Tensor> tensors;        // by name
  std::map<std::string, std::string> metadata;  // __metadata__
};

// Errors: CheckpointError naming the first problem (what the format forbids, and what its reference
// reader lets through: duplicate keys, control characters in names, gaps, overlaps, trailing
// bytes); EnvironmentError when the file cannot be read or is larger than memory.
Safetensors read_safetensors(const std::filesystem::path& path);

// Writes the file atomically: a crash leaves the old file or the new one. Writes a temporary file
// beside it, then fsync, rename, and fsync of the folder. Errors: EnvironmentError.
void write_safetensors(const std::filesystem::path& path, const Safetensors& content);

}  // namespace lockstep
#pragma GCC visibility pop
