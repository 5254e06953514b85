// NVIDIA's libraries among Python's packages, where the loader does not look: pip puts
// libcudnn.so.9 of nvidia-cudnn-cu13 into site-packages/nvidia/cudnn/lib.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cuda {

// Folders with a Python in lib/python3*: VIRTUAL_ENV, CONDA_PREFIX, the user's own (PYTHONUSERBASE,
// else ~/.local), /usr/local and /usr, in this order.
std::vector<std::filesystem::path> python_prefixes();

// The files of that name in these Pythons' packages, by prefix and then by name.
std::vector<std::string> find_in_packages(std::span<const std::filesystem::path> prefixes,
                                          std::string_view soname);

// As dlopen(soname) where the loader finds it, else the first of find_in_packages() that loads.
// Null where none does: dlerror() then says why.
void* open_library(const char* soname);

}  // namespace lockstep::cuda
