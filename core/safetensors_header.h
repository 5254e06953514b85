// The JSON header of a .safetensors file, which says where each tensor lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/function_ref.h"
#include "core/safetensors.h"
#include "core/shape.h"

namespace lockstep {

struct SafetensorsEntry {
  Dtype dtype = Dtype::kF32;
  Shape shape;
  uint64_t begin = 0;  // byte offsets in the data section
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Longer headers are rejected.
constexpr uint64_t kMaxSafetensorsHeader = uint64_t{16} << 20;

// [A-Za-z0-9_.\-/]{1,256} without "..", and not "__metadata__".
bool is_tensor_name(std::string_view name);

// Parses and checks all that can be checked without the data: every byte of the data section
// belongs to exactly one tensor of a known dtype and matching size. `file` is named in errors.
// Errors: CheckpointError with the first problem as why().
SafetensorsHeader parse_safetensors_header(std::string_view json,
                                           uint64_t data_bytes,
                                           const std::string& file);

// Reads only the header of a file. Errors: those of read_safetensors().
SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);
// As read_safetensors(path), but calls check() before it allocates memory for tensors, so that a
// wrong file is rejected by its header. Errors: also those of check().
Safetensors read_safetensors(const std::filesystem::path& path,
                             FunctionRef<void(const SafetensorsHeader&)> check);

// The header as JSON, tensors by offset, padded with blanks to a multiple of 8 bytes. Equal headers
// give equal bytes. Invalid UTF-8 in metadata is replaced by U+FFFD.
std::string format_safetensors_header(const SafetensorsHeader& header);

// The error for a file that breaks the format's rules.
[[noreturn]] void refuse_safetensors(const std::string& file, const std::string& why);

}  // namespace lockstep
