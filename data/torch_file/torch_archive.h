// The zip file that torch.save writes since PyTorch 1.6.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/safetensors.h"

namespace lockstep::data {

// The member with Lockstep's metadata, after the name of the folder that holds all members. PyTorch
// ignores it.
inline constexpr std::string_view kMetadataMember = "/lockstep.json";

// As read_torch_file(), but only for this form.
Safetensors read_torch_archive(const std::filesystem::path& path);

}  // namespace lockstep::data
